package worker

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stint/api"
	"stint/worker/proc"
)

// A secret is hidden in the forms in which programs print it, wherever it stands, with
// colour codes within it and however the stream is cut.
func TestMasker_HidesEveryFormOfASecret(t *testing.T) {
	const secret = `p@ss"w/ö+rd&9<key>`
	secrets := secretsOf([]string{"MYSQL_PWD=" + secret})
	quoted, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]string{
		"plain": secret, "json": strings.Trim(string(quoted), `"`), "hex": hex.EncodeToString([]byte(secret)),
		"hex in capitals": strings.ToUpper(hex.EncodeToString([]byte(secret))), "query": url.QueryEscape(secret), "path": url.PathEscape(secret),
		"query in small letters": lowerPercent(url.QueryEscape(secret)), "html": html.EscapeString(secret),
		"coloured": "p@ss\x1b[1;31m\"w/\x1b[0mö+rd\x1b]0;title\x07&9<key>",
	}
	for name, form := range forms {
		everyCut(t, name, "before "+form+" after", "before *** after", secrets)
	}
	for before := range 4 {
		for name, coding := range map[string]*base64.Encoding{
			"std": base64.StdEncoding, "raw": base64.RawStdEncoding, "url": base64.URLEncoding, "raw url": base64.RawURLEncoding,
		} {
			text := coding.EncodeToString([]byte(strings.Repeat("u", before) + secret + ":x"))
			hidden := maskString(text, secrets)
			if shown := strings.TrimRight(strings.ReplaceAll(hidden, maskText, ""), "="); len(shown) > 4+before*4/3+4 || !strings.Contains(hidden, maskText) {
				t.Errorf("%s behind %d bytes: %q became %q", name, before, text, hidden)
			}
			everyCut(t, name, text, hidden, secrets)
		}
	}
}

func everyCut(t *testing.T, name, text, want string, secrets [][]byte) {
	t.Helper()
	for at := range len(text) + 1 {
		m := masker{secrets: secrets}
		got := string(m.write([]byte(text[:at]))) + string(m.write([]byte(text[at:]))) + string(m.rest())
		if got != want {
			t.Fatalf("%s, cut at %d: %q, want %q", name, at, got, want)
		}
	}
	m, got := masker{secrets: secrets}, ""
	for i := range len(text) {
		got += string(m.write([]byte{text[i]}))
	}
	if got += string(m.rest()); got != want {
		t.Fatalf("%s, byte by byte: %q, want %q", name, got, want)
	}
}

func TestMasker_LeavesEverythingElseAsItIs(t *testing.T) {
	secrets := secretsOf([]string{"API_KEYS=sk-0123456789ab,sk-abcdef987654", "SSH_PRIVATE_KEY=-----BEGIN KEY-----\nMIIEowIBAAKCAQEA\n-----END KEY-----"})
	rng := rand.New(rand.NewPCG(5, 6))
	words := []string{"\x1b[1m", "\x1b", "[", "]0;", "\x07", "\x1b]", "é", "\n", "sk-", "-----BEGIN KEY-----", "text ", "\x1b[3"}
	for range 5_000 {
		var plain string
		for range 1 + rng.IntN(10) {
			plain += words[rng.IntN(len(words))]
		}
		m, got := masker{secrets: secrets}, ""
		for rest := plain; rest != ""; {
			n := 1 + rng.IntN(len(rest))
			got += string(m.write([]byte(rest[:n])))
			rest = rest[n:]
		}
		if got += string(m.rest()); got != plain {
			t.Fatalf("%q became %q", plain, got)
		}
	}
	for _, text := range []string{"sk-0123456789ab", "sk-abcdef987654", "MIIEowIBAAKCAQEA"} {
		if got := maskString("a "+text+" b", secrets); got != "a *** b" {
			t.Errorf("a part of a value is shown: %q", got)
		}
	}
	m := masker{secrets: secrets}
	m.write([]byte("sk"))
	for range 1 << 10 {
		m.write([]byte("\x1b[0m\x1b[1m\x1b[0m\x1b[1m"))
	}
	if len(m.carry) > 64<<10 {
		t.Errorf("%d bytes are held back", len(m.carry))
	}
}

// Whatever is reported of a session, no text in it has a secret, and what the protocol reads
// stays as it is.
func TestOutbox_HidesSecretsInEveryText(t *testing.T) {
	_, o := outboxFor(t, 1<<30)
	const secret = "agent_failed-hush" // begins like a code
	o.hide(secretsOf(nil, secret, "stdout", "hush-hush"))
	said := "it is " + secret
	for _, e := range []entry{
		mustEntry(t, entryActivity, api.ActivityInput{Key: "k", Type: api.ActivityProgress, Text: said}),
		mustEntry(t, entryItem, api.ItemInput{ClientID: "c", Kind: api.ItemText, Stream: "stdout", Text: said, Tool: said}),
		mustEntry(t, entryPatch, api.SessionPatch{Plan: &said, ExternalURL: new("https://x.test/?t=" + secret)}),
		mustEntry(t, entryFail, api.FailRequest{Code: "HOOK_FAILED", Message: "hush-hush " + fmt.Sprintf("%x", secret), Result: said}),
	} {
		if err := o.add(e); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for {
		batch, err := o.next()
		if err != nil {
			t.Fatal(err)
		}
		if len(batch) == 0 {
			break
		}
		for _, e := range batch {
			got = append(got, string(e.body))
		}
		o.answered(batch)
	}
	all := strings.Join(got, "\n")
	for _, s := range []string{secret, hex.EncodeToString([]byte(secret)), "hush-hush"} {
		if strings.Contains(all, s) {
			t.Errorf("%s is in\n%s", s, all)
		}
	}
	if len(got) != 4 || !strings.Contains(all, `"stream":"stdout"`) || !strings.Contains(all, `"it is ***"`) || !strings.Contains(all, `"code":"HOOK_FAILED"`) {
		t.Errorf("reported\n%s", all)
	}
}

// base64, xxd -p and fold print long values in lines, and what they are given may itself have
// lines.
func TestMasker_SecretsThatWereWrapped(t *testing.T) {
	const secret = "correct-horse-battery-staple"
	secrets := secretsOf([]string{"DB_PASSWORD=" + secret})
	for before := range 90 {
		text := strings.Repeat("x", before) + secret + strings.Repeat("y", 40)
		for _, c := range []struct {
			encoded string
			columns []int
		}{
			{base64.StdEncoding.EncodeToString([]byte(text)), []int{5, 20, 60, 64, 76}},
			{hex.EncodeToString([]byte(text)), []int{7, 60}},
			{text, []int{1, 2, 3, 5, 8, 11, 20, 80}},
		} {
			for _, columns := range c.columns {
				for _, end := range []string{"\n", "\r\n", "\x1b[0m\n\x1b[1m"} {
					wrapped := "-----\n" + strings.Join(folded(c.encoded, columns), end) + end
					m, got := masker{secrets: secrets}, ""
					for i := range len(wrapped) {
						got += string(m.write([]byte{wrapped[i]}))
					}
					got += string(m.rest())
					for _, shown := range []string{got, maskString(wrapped, secrets)} {
						joined := strings.ReplaceAll(shown, end, "")
						for _, form := range secrets {
							for at := 0; at+8 <= len(form); at++ {
								if part := string(form[at : at+8]); strings.Contains(c.encoded, part) && strings.Contains(joined, part) {
									t.Fatalf("after %d bytes in lines of %d: %q", before, columns, shown)
								}
							}
						}
					}
				}
			}
		}
	}
	keyed := secretsOf([]string{"SSH_KEY=-----BEGIN KEY-----\nshort\nlines\n-----END KEY-----"})
	everyCut(t, "a key of several lines", "<-----BEGIN KEY-----\r\nshort\r\nlines\r\n-----END KEY----->", "<***>", keyed)
}

func folded(text string, columns int) (lines []string) {
	for text != "" {
		n := min(columns, len(text))
		lines, text = append(lines, text[:n]), text[n:]
	}
	return lines
}

// A line is shown once it has ended, even if it ends like the beginning of a secret; if the
// rest comes, that is hidden.
func TestMasker_ShowsALineAtOnce(t *testing.T) {
	secrets := secretsOf([]string{"DB_PASSWORD=correct-horse-battery-staple"})
	for _, end := range []string{"\n", "\r\n", "\x1b[0m\n", "\n\n\n"} {
		for begun := range wrapLeast {
			line := "Proceed? " + "correct"[:begun] + end
			m := masker{secrets: secrets}
			if got := string(m.write([]byte(line))); got != line {
				t.Errorf("a plain line is held back: %q is shown of %q", got, line)
			}
			got := string(m.write([]byte("correct-horse-battery-staple"[begun:]+end))) + string(m.rest())
			if begun > 0 && got != maskText+end {
				t.Errorf("after %q the rest of a secret became %q", line, got)
			}
		}
		m := masker{secrets: secrets}
		if got := string(m.write([]byte("Proceed? corr" + end))); got != "Proceed? " {
			t.Errorf("the beginning of a secret is shown: %q", got)
		}
		if got := string(m.rest()); got != "corr"+end {
			t.Errorf("at the end it is %q", got)
		}
	}
}

// However text with codes and breaks in it is cut, no more of a secret is shown than of the
// whole, except for the few bytes that a line may end with.
func TestMasker_BrokenSecretsHoweverTheStreamIsCut(t *testing.T) {
	const one, other = "0123456789ABCDEF", "0189GHIJKL"
	secrets := secretsOf(nil, one, other)
	rng := rand.New(rand.NewPCG(7, 3))
	noise := []string{"\n", "\n", "\r\n", "\x1b[1m", "\x1b]0;t\x07", "\x1b(0"}
	for range 20_000 {
		var plain string
		for range 1 + rng.IntN(4) {
			plain += []string{"x ", "01", "012", "~", "\n"}[rng.IntN(5)]
			for _, c := range []string{one, other}[rng.IntN(2)] {
				if plain += string(c); rng.IntN(4) == 0 {
					plain += noise[rng.IntN(len(noise))]
				}
			}
		}
		m, got := masker{secrets: secrets}, ""
		for rest := plain; rest != ""; {
			n := 1 + rng.IntN(len(rest))
			got += string(m.write([]byte(rest[:n])))
			rest = rest[n:]
		}
		got += string(m.rest())
		for _, shown := range []string{got, maskString(plain, secrets)} {
			for _, v := range viewsOf(nil, []byte(shown)) {
				if bytes.ContainsAny(v.text, "3456ABCDEFGHIJKL") {
					t.Fatalf("%q became %q", plain, shown)
				}
			}
		}
	}
}

// The answer to a secret question is hidden in output that comes in pieces too.
func TestMasker_MoreSecretsWhileTextComes(t *testing.T) {
	o := newOutput(&session{p: &Process{}}, nil)
	st := o.streams[proc.Stderr]
	o.hide(secretsOf(nil, "open sesame"))
	got := string(st.mask.write([]byte("say open se"))) + string(st.mask.write([]byte("same now"))) + string(st.mask.rest())
	if got != "say *** now" {
		t.Errorf("it shows %q", got)
	}
}

// What a worker says about its owner's files is sent with beats, not through the outbox.
func TestNotices_QuoteNoSecret(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	const secret = "s3cr3t-value-of-env"
	a, o, _ := w.talks("talker", nil)
	flow := filepath.Join(t.TempDir(), "WORKFLOW.md")
	w.must(os.WriteFile(flow, []byte("---\nworkspace:\n  mode: "+secret+"\n---\nx\n"), 0o600))
	w.owns(o, "talker", "workflow = '"+flow+"'\n")
	o.environ = append(os.Environ(), "DEPLOY_TOKEN="+secret)
	w.start(o)
	w.eventually("a notice tells what is wrong", func() bool {
		all, err := w.client.AgentWorkers(t.Context(), a.Slug, api.Page{})
		w.must(err)
		if len(all.Items) != 1 || len(all.Items[0].Notices) == 0 {
			return false
		}
		if text := all.Items[0].Notices[0].Text; strings.Contains(text, secret) || !strings.Contains(text, maskText) {
			t.Errorf("it says %q", text)
		}
		return true
	})
}
