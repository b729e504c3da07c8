package workspace

import "testing"

// What nothing brings back is recognized by any name, and what tools write is not kept.
func TestTreasures_ByTheWordsOfTheirNames(t *testing.T) {
	c := collector{}
	for _, name := range []string{
		".env", ".ENV", ".env.production", ".env-prod", ".env2", "prod.env.bak", ".envrc", "config.local", "settings.local.json", "local_settings.py",
		"settings_local.py", ".secrets.toml", "secrets.js", "token.txt", "auth.json", "service-account.json", "kubeconfig", ".htpasswd", ".git-credentials",
		".npmrc", "credentials", "database.yml", "App.DB", "data.db-wal", "data.duckdb", "x.sqlite3", "x.sqlite.bak", "x.rdb", "dump.sql.gz", "store.db/",
		"Server.PEM", "server.crt", "x.ppk", "notes/private.key", "master.key", "id_ed25519", "terraform.tfstate.backup", ".aws/config", "a/.ssh/known_hosts",
		"out/results.db", "build/.env", "dist/prod.key", "target/secrets.yml", "coverage/app.db", ".cache/session.sqlite", "vendor/app/.env.local",
	} {
		if c.wanted(name) == "" {
			t.Errorf("%s would be removed", name)
		}
	}
	for _, name := range []string{
		"node_modules/tls/test/cert.pem", ".venv/lib/python3/site-packages/certifi/cacert.pem", "env/", "env/bin/activate", "Pods/x.key", ".mypy_cache/3.14/cache.db",
		".parcel-cache/data.mdb", "vendor/composer/ca-bundle/res/cacert.pem", "vendor/laravel/auth/passwords.php", "vendor/x/.env.example", ".env.example",
		"target/debug/.fingerprint/env_logger-1a2b/lib-env_logger.json", "target/debug/deps/env_logger-1a2b.d", "target/debug/auth", "build/secrets.o",
		"dist/assets/auth-3f2a.js", "dist/x.local.js", "src/token.js", "auth.log", "x.tmp", "app.log", "a.out", "bin/keys", "build/", "monkey.json",
	} {
		if as := c.wanted(name); as != "" {
			t.Errorf("%s would be kept: %s", name, as)
		}
	}
}

// Owners have the last word, about a folder too.
func TestTreasures_KeepIgnoredDecides(t *testing.T) {
	c := collector{rules: Rules{KeepIgnored: []string{"*.log", "node_modules/own/*", "!*.db", "!.cache"}}}
	for name, want := range map[string]string{
		"a/x.log": "keep_ignored names it", "node_modules/own/x": "keep_ignored names it", "x.db": "", ".cache/deep/x.key": "", "x.key": "it looks like a key",
	} {
		if as := c.wanted(name); as != want {
			t.Errorf("%s: %q, want %q", name, as, want)
		}
	}
}
