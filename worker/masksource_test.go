package worker

import (
	"encoding/base64"
	"strings"
	"testing"
)

// What is secret within a variable's value is also hidden by itself, and what stands beside it
// isn't.
func TestSecretsOf_PartsOfValues(t *testing.T) {
	const token = "ghp_0a1B2c3D4e5F6g7H"
	login := base64.StdEncoding.EncodeToString([]byte("someone:hunter2x"))
	for name, c := range map[string]struct {
		env          string
		hidden, left []string
	}{
		"a token as the user of an address":  {"REMOTE=https://" + token + "@github.test/o/r", []string{token}, []string{"github.test/o/r"}},
		"a token without a digit":            {"REMOTE=https://abcdefghijklmnop@github.test/o/r", []string{"abcdefghijklmnop"}, nil},
		"a token with what isn't a password": {"REMOTE=https://" + token + ":x-oauth-basic@github.test/o/r", []string{token}, nil},
		"a user that is a name":              {"DATABASE_URL=postgres://postgres@db.test/postgres", nil, []string{"postgres://postgres@db.test/postgres"}},
		"another":                            {"REMOTE=ssh://deployment-robot@git.test/r", nil, []string{"deployment-robot"}},
		"a mail address":                     {"REMOTE=https://some.one1985%40mail.test@git.test/r", nil, []string{"some.one1985%40mail.test"}},
		"user and password":                  {"DATABASE_URL=postgres://someone:p%25ss-w%2Frd@db.test/x", []string{"p%25ss-w%2Frd", "p%ss-w/rd", base64.StdEncoding.EncodeToString([]byte("p%ss-w/rd"))}, []string{"someone", "db.test"}},
		"a short password with its user":     {"DATABASE_URL=postgres://someone:abc@db.test/x", []string{"someone:abc"}, []string{"abc", "someone"}},
		"a password that no parser takes":    {"DATABASE_URL=postgres://someone:p%ss-w%rd@db.test/x", []string{"p%ss-w%rd"}, nil},
		"several addresses":                  {"INDEXES=https://a:first-one@x.test/ https://b:second-one@y.test/,https://c:third-one@z.test", []string{"first-one", "second-one", "third-one"}, []string{"https://"}},
		"a login":                            {"BASIC_AUTH=someone:hunter2x", []string{"someone:hunter2x", "hunter2x", login}, []string{"someone"}},
		"several logins":                     {"PROXY_AUTH=someone:hunter2x,another:hunter3x", []string{"hunter2x", "hunter3x"}, []string{"someone"}},
		"a login in base64":                  {"REGISTRY_AUTH=" + login, []string{login, "someone:hunter2x", "hunter2x"}, []string{"someone"}},
		"a header":                           {"HTTP_AUTHORIZATION=Basic " + login, []string{login, "hunter2x"}, []string{"Basic ", "someone"}},
		"headers":                            {"EXTRA_HEADERS=X-Region: region-one\nX-Api-Key: " + token + "\nAuthorization: Bearer abc-def-ghi", []string{token, "abc-def-ghi"}, []string{"region-one", "Bearer "}},
		"headers of another kind":            {"OTLP_HEADERS=x-region=region-one,authorization=Bearer%20abc-def-ghi", []string{"abc-def-ghi"}, []string{"region-one"}},
		"Docker's settings": {
			`DOCKER_AUTH_CONFIG={"auths": {"registry.test": {"auth": "` + login + `", "email": "one@mail.test"}, "other.test": {"identitytoken": "` + token + `"}}}`,
			[]string{login, "someone:hunter2x", "hunter2x", token},
			[]string{"registry.test", "one@mail.test", "someone"},
		},
		"a service's key": {
			`GOOGLE_CREDENTIALS={"type":"service_account","project_id":"my-project-123456","private_key":"-----BEGIN KEY-----\nMIIEowIBAAKCAQEA\n-----END KEY-----\n"}`,
			[]string{"MIIEowIBAAKCAQEA"},
			[]string{"service_account", "my-project-123456", "private_key", "BEGIN KEY"},
		},
		"a service's key in base64": {"GCP_KEY=" + base64.StdEncoding.EncodeToString([]byte(`{"private_key": "MIIEowIBAAKCAQEA"}`)), []string{"MIIEowIBAAKCAQEA"}, nil},
		"keys in a list":            {`API_KEYS=["` + token + `", "second-one"]`, []string{token, "second-one"}, nil},
		"keys by name":              {`API_KEYS={"acme": "` + token + `", "region": "region-one"}`, []string{token}, []string{"region-one", "acme"}},
		"a document":                {`SERVICES={"db": [{"name": "db-one", "password": "hunter2x", "key": "environment"}]}`, []string{"hunter2x"}, []string{"db-one", "environment"}},
		"a connection string":       {"STORAGE=DefaultEndpointsProtocol=https;AccountName=myaccount;AccountKey=abcd0123+/efgh==;EndpointSuffix=core.test", []string{"abcd0123+/efgh=="}, []string{"myaccount", "core.test"}},
		"parameters of an address":  {"JDBC=jdbc:postgresql://db.test/x?user=someone&password=hunter%2F2x", []string{"hunter%2F2x", "hunter/2x"}, []string{"someone", "db.test"}},
		"a signed address":          {"BLOB=https://blob.test/c?sv=2020-01-01&sig=abc%2Fdef0123456%3D", []string{"abc%2Fdef0123456%3D", "abc/def0123456="}, []string{"2020-01-01"}},
		"options":                   {"JAVA_OPTIONS=-Xmx512m -Dtrust.storePassword=changeit --key=environment", []string{"changeit"}, []string{"-Xmx512m", "environment"}},
		"a key that is an option":   {"GIT_SSH_COMMAND=ssh -o StrictHostKeyChecking=accept-new -o PasswordAuthentication=disabled", nil, []string{"accept-new", "disabled"}},
		"a webhook": {
			"SLACK_WEBHOOK_URL=https://hooks.test/services/T00000000/B00000000/abcdEFGH1234",
			[]string{"https://hooks.test/services/T00000000/B00000000/abcdEFGH1234", "/services/T00000000/B00000000/abcdEFGH1234", "abcdEFGH1234"},
			[]string{"hooks.test", "services"},
		},
		"a webhook with a query": {"WEBHOOK=https://hooks.test/in?t=abcdEFGH1234", []string{"/in?t=abcdEFGH1234"}, []string{"hooks.test", "/in"}},
		"no webhook's address":   {"WEBHOOK_MODE=enabled", nil, []string{"enabled"}},
		"a webhook's host":       {"WEBHOOK_URL=https://hooks.test/", nil, []string{"https://hooks.test/"}},
		"a prompt":               {"STINT_PROMPT=password: hunter2x\npassword=hunter3x", nil, []string{"hunter2x", "hunter3x"}},
	} {
		secrets := secretsOf([]string{c.env})
		for _, text := range c.hidden {
			if got := maskString("<"+text+">", secrets); !strings.Contains(got, maskText) || len(got) > len("<***A==>") {
				t.Errorf("%s: %q became %q", name, text, got)
			}
		}
		for _, text := range c.left {
			if got := maskString("<"+text+">", secrets); got != "<"+text+">" {
				t.Errorf("%s: %q became %q", name, text, got)
			}
		}
	}
}

// Any value of an env file is a secret, and may be a word that occurs elsewhere: only what a
// name calls secret is taken apart.
func TestSecretsOf_ValuesWithoutNames(t *testing.T) {
	secrets := secretsOf(nil, "cache:enabled", "first-value-1,second-value-2")
	for text, want := range map[string]string{"cache:enabled": maskText, "enabled": "enabled", "first-value-1,second-value-2": maskText, "second-value-2": "second-value-2"} {
		if got := maskString(text, secrets); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}
