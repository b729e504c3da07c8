package workspace

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// A treasure is a file that git is often asked to ignore and that nothing brings back:
// settings with secrets, databases, keys. Files are recognized by the words of their names, in
// any capitals, so that data.db-wal and prod.env.bak count like data.db and .env. A false
// match keeps a folder too long; a miss loses one.
//
// Words that mean a treasure after a dot: .env-prod, App.DB, x.sql.gz.
var (
	settingWords = words(`env envs envrc local secret secrets credential credentials passwd password passwords htpasswd netrc npmrc pypirc
		pgpass vault boto s3cfg kubeconfig tfstate tfvars`)
	databaseWords = words(`db sqlite sqlitedb sdb duckdb ddb mdb accdb rdb aof realm ldb dbf ibd myd`)
	dumpWords     = words(`sql dump pgdump bson`)
	keyWords      = words(`key keys pem p8 p12 pfx jks keystore kdb kdbx asc gpg pgp ppk ovpn crt cer der jwk jwt keytab keyring mobileprovision`)
)

// Words that mean one before the dot: those that mean nothing else, and those that also name
// pieces of programs and so count only where the file is of a kind that holds settings, such
// as token.txt and local_settings.py.
var (
	clearWords = words(`secret secrets credential credentials passwd password passwords kubeconfig htpasswd keystore apikey apikeys adminsdk`)
	vagueWords = words(`env local auth token tokens key keys account accounts serviceaccount localsettings private db database dump`)
	settings   = words(`json yml yaml toml ini cfg conf config txt properties xml`)
	scripts    = words(`py rb php sh`)
)

var (
	// privateDirs are folders in which everything is a treasure.
	privateDirs = words(`.aws .azure .docker .gcloud .gnupg .kube .ssh secrets .secrets credentials`)
	// samples are words in the names of files that stand in for the real one.
	samples = words(`example sample template`)
	// compiled are what no person wrote, whatever it is called.
	compiled = words(`o a so obj class pyc pyo d lo la lib dll dylib exe wasm rlib rmeta gcda gcno`)
	// built are, in addition, what builds write: dist/secrets.js came out of a program's
	// source.
	built = words(`js mjs cjs css html map ts svg jar whl`)
)

var (
	// packaged are folders that tools fill again and again: what looks like a treasure there
	// came out of a package, or belongs to a tool.
	packaged = words(`node_modules bower_components venv .venv site-packages __pycache__ .tox .nox .mypy_cache .pytest_cache .ruff_cache .hypothesis
		.next .nuxt .svelte-kit .angular .turbo .parcel-cache .yarn .pnpm-store .gradle .m2 .cargo .fingerprint incremental cmakefiles pods
		.terraform .eggs .build deriveddata .vs .dart_tool .stack-work elm-stuff`)
	// output are folders that builds write to, and people and programs as well.
	output = words(`target build _build dist out bin obj coverage .cache`)
	// vendored is other people's source, with the keys and dumps that its tests need.
	vendored = "vendor"
)

func words(list string) map[string]bool {
	all := map[string]bool{}
	for _, w := range strings.Fields(list) {
		all[w] = true
	}
	return all
}

// wanted says as what kind of file an ignored one keeps the workspace, by its path in the
// workspace; a folder's ends in a slash. "" means that it doesn't.
func (c collector) wanted(name string) (as string) {
	file := strings.TrimSuffix(name, "/")
	fits := func(pattern, name string) bool {
		whole, _ := path.Match(pattern, name)
		base, _ := path.Match(pattern, path.Base(name))
		return whole || base
	}
	if slices.ContainsFunc(c.rules.KeepIgnored, func(pattern string) bool { return fits(pattern, file) }) {
		return "keep_ignored names it"
	}
	excepted := slices.ContainsFunc(c.rules.KeepIgnored, func(pattern string) bool {
		except, ok := strings.CutPrefix(pattern, "!")
		for at := file; ok && at != "."; at = path.Dir(at) {
			if fits(except, at) {
				return true
			}
		}
		return false
	})
	if excepted {
		return ""
	}
	return treasure(strings.ToLower(file), strings.HasSuffix(name, "/"))
}

// treasure says what a path in lower case looks like, "" for nothing special.
func treasure(name string, folder bool) string {
	parts := strings.Split(name, "/")
	above, base := parts[:len(parts)-1], parts[len(parts)-1]
	has := func(set map[string]bool) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return set[p] })
	}
	ending := strings.TrimPrefix(path.Ext(base), ".")
	made := has(output)
	switch {
	case has(packaged), !folder && (compiled[ending] || made && built[ending]), anyWord(samples, base):
		return ""
	case has(privateDirs):
		return "it looks like a secret"
	}
	vendor := slices.Contains(parts, vendored)
	for _, part := range append(above, base) {
		_, dotted, _ := strings.Cut(part, ".")
		switch {
		case anyWord(settingWords, dotted):
			return "it looks like settings or secrets"
		case anyWord(databaseWords, dotted):
			return "it looks like a database"
		case !vendor && anyWord(dumpWords, dotted):
			return "it looks like a database"
		case !vendor && anyWord(keyWords, dotted):
			return "it looks like a key"
		}
	}
	if folder || vendor {
		return "" // env/ is where Python's packages lie
	}
	stem, _, more := strings.Cut(base, ".")
	switch holds := settings[ending]; {
	case strings.HasPrefix(base, "id_rsa"), strings.HasPrefix(base, "id_dsa"), strings.HasPrefix(base, "id_ed25519"), strings.HasPrefix(base, "id_ecdsa"):
		return "it looks like a key"
	case made && !holds:
	case anyWord(clearWords, stem), (holds || scripts[ending] || !more) && anyWord(vagueWords, stem):
		return "it looks like settings or secrets"
	}
	return ""
}

// anyWord reports whether a text has a word of a set, with or without digits after it.
func anyWord(set map[string]bool, text string) bool {
	between := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	return slices.ContainsFunc(strings.FieldsFunc(text, between), func(w string) bool {
		return set[w] || set[strings.TrimRight(w, "0123456789")]
	})
}
