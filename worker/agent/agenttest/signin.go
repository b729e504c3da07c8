package agenttest

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Key is the key to the model that the programs are given. None of their commands should see
// it.
const Key = "sk-scripted-0123456789"

// Private is a text in each of the programs' own files that none of their tools should read.
const Private = "PRIVATE-OF-THE-USER"

// Signed are the files below a home that [SignIn] creates, all of them private.
var Signed = []string{
	".claude/.credentials.json", ".claude/settings.json", ".claude.json",
	".codex/auth.json", ".codex/config.toml",
}

// SignIn makes a home that of a user who has signed in to both programs and also uses them by
// hand: with the files that their sign-ins and settings are in.
func SignIn(t testing.TB, home string) {
	t.Helper()
	for name, content := range map[string]string{
		".claude/.credentials.json": `{"claudeAiOauth":{"accessToken":"` + Key + `","refreshToken":"` + Private + `","expiresAt":4102444800000,` +
			`"scopes":["user:inference","user:profile"],"subscriptionType":"max"}}`,
		".claude/settings.json": `{"env":{"MINE":"` + Private + `"}}`,
		".claude.json":          `{"hasCompletedOnboarding":true,"numStartups":7,"userID":"` + Private + `"}`,
		".codex/auth.json": fmt.Sprintf(`{"auth_mode":"chatgpt","OPENAI_API_KEY":null,"tokens":{"id_token":%q,"access_token":%q,"refresh_token":%q,"account_id":"account"},"last_refresh":%q}`,
			idToken(), Key, Private, time.Now().UTC().Format(time.RFC3339)),
		".codex/config.toml": "# " + Private + "\n",
	} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// idToken says who signed in, in the form that Codex reads. It is unsigned.
func idToken() string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"none","typ":"JWT"}`)) + "." +
		part([]byte(`{"email":"someone@example.com","https://api.openai.com/auth":{"chatgpt_plan_type":"plus","chatgpt_account_id":"account"}}`)) + "." +
		part([]byte("none"))
}
