package worker

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"stint/api"
	"stint/worker/workertest"
)

// highWater is the most memory that a process has had resident, in MiB.
func highWater(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb >> 10
}

func TestOutput_FiftyMegabytesArriveWholeInBoundedMemory(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	const size = 50 << 20
	a := w.agent("flood", workertest.Agent(t, "flood", fmt.Sprint(size))...)
	c := w.spawn(nil)
	began := time.Now()
	id := w.trigger(a, "")
	w.untilStatus(id, api.Complete)
	t.Logf("50 MiB in %v, worker's high water %d MiB", time.Since(began).Round(time.Millisecond), highWater(t, c.cmd.Process.Pid))
	if got := highWater(t, c.cmd.Process.Pid); got > 120 {
		t.Errorf("the worker used %d MiB", got)
	}
	next, rest := 0, ""
	for after := int64(0); ; {
		page, err := w.client.Items(t.Context(), id, after, 100)
		w.must(err)
		if len(page.Items) == 0 {
			break
		}
		for _, it := range page.Items {
			after = it.Seq
			if it.Kind != api.ItemText {
				continue
			}
			if it.Truncated {
				t.Fatalf("item %d is truncated", it.Seq)
			}
			lines := strings.Split(rest+it.Text, "\n")
			rest = lines[len(lines)-1]
			for _, line := range lines[:len(lines)-1] {
				if n, err := strconv.Atoi(line[:9]); err != nil || n != next || len(line) != 99 {
					t.Fatalf("line %d is %.20q", next, line)
				}
				next++
			}
		}
	}
	if next != size/100 {
		t.Errorf("%d lines arrived, want %d", next, size/100)
	}
}

func TestOutput_WaitsForTheOutboxAndLosesNothing(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	o.OutboxBytes = 1 << 20
	w.start(o)
	const size = 8 << 20
	file := filepath.Join(t.TempDir(), "through")
	a := w.agent("held", "sh", "-c",
		fmt.Sprintf("%s; touch %s", strings.Join(workertest.Agent(t, "flood", fmt.Sprint(size)), " "), file))
	w.proxy.Rule(func(call string, _ int) workertest.Fault { return workertest.Fault{Drop: call == "POST items"} })
	id := w.trigger(a, "")
	w.eventually("the outbox is full", func() bool {
		info, err := os.Stat(filepath.Join(o.StateDir, "worker.db-wal"))
		return err == nil && info.Size() > 1<<20
	})
	time.Sleep(300 * time.Millisecond)
	if _, err := os.Stat(file); err == nil {
		t.Error("the command got through though its output had nowhere to go")
	}
	w.proxy.Rule(nil)
	w.untilStatus(id, api.Complete)
	if got := w.text(id, "stdout"); len(got) != size/100*100 {
		t.Errorf("%d bytes arrived, want %d", len(got), size/100*100)
	}
}

func TestOutput_IsMaskedValidAndApart(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	secret := "s3cr3t-ωord"
	o.environ = append(os.Environ(), "MY_TOKEN="+secret, "DATABASE_URL=postgres://me:pa55word@host/db", "PLAIN=visible")
	env := func(in *api.AgentInput) { in.Run.Env = []string{"MY_TOKEN", "DATABASE_URL", "PLAIN"} }
	text := filepath.Join(t.TempDir(), "text")
	w.must(os.WriteFile(text, []byte("a "+secret+" b "+w.token+" c"), 0o600))
	pieces := w.agentWith("pieces", env, workertest.Agent(t, "pieces", text, "3")...)
	mixed := w.agentWith("mixed", env, "sh", "-c",
		`printf 'one\n'; printf 'two\n' >&2; printf '\033[31mred\033[0m \377\376 zero\000 \342\202'; printf 'X\n'; echo "$PLAIN $DATABASE_URL"; echo "fatal $MY_TOKEN" >&2; exit 1`)
	w.start(o)
	one, two := w.trigger(pieces, ""), w.trigger(mixed, "")
	s := w.untilStatus(one, api.Complete)
	if got := w.text(one, "stdout"); got != "a *** b *** c" || s.Result != "a *** b *** c" {
		t.Errorf("output %q, result %q", got, s.Result)
	}
	s = w.untilStatus(two, api.Failed)
	if got, want := w.text(two, "stdout"), "one\n\x1b[31mred\x1b[0m \ufffd\ufffd zero\ufffd \ufffd\ufffdX\nvisible postgres://me:***@host/db\n"; got != want {
		t.Errorf("stdout %q, want %q", got, want)
	}
	if got := w.text(two, "stderr"); got != "two\nfatal ***\n" {
		t.Errorf("stderr %q", got)
	}
	if !strings.Contains(s.Error.Message, "fatal ***") || strings.Contains(s.Result, "\x1b") {
		t.Errorf("message %q, result %q", s.Error.Message, s.Result)
	}
	// Not in any file of either side.
	for _, file := range []string{"stint.db", "stint.db-wal", "worker/worker.db", "worker/worker.db-wal"} {
		b, err := os.ReadFile(filepath.Join(w.dir, file))
		if err == nil && (bytes.Contains(b, []byte(secret)) || bytes.Contains(b, []byte(w.token)) || bytes.Contains(b, []byte("pa55word"))) {
			t.Errorf("%s holds a secret", file)
		}
	}
}

func TestOutput_LongLinesArriveWhole(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.start(w.options())
	const size = 3 << 20
	a := w.agent("line", "sh", "-c", fmt.Sprintf(`head -c %d /dev/zero | tr '\0' 'x'; echo; echo end`, size))
	id := w.trigger(a, "")
	w.untilStatus(id, api.Complete)
	got := w.text(id, "stdout")
	if len(got) != size+5 || !strings.HasSuffix(got, "x\nend\n") {
		t.Errorf("%d bytes, end %q", len(got), got[max(0, len(got)-10):])
	}
}

func TestMasker_HidesSecretsHoweverTheStreamIsCut(t *testing.T) {
	secrets := secretsOf([]string{"A_TOKEN=abcabcd", "B_SECRET=cabxyz", "C_KEY=abcabcabc", "SHORT_KEY=abc", "PLAIN=zzzzzz"}, "token-of-mine")
	for _, plain := range []string{"abcabcd", "cabxyz", "abcabcabc", "token-of-mine"} {
		if !slices.ContainsFunc(secrets, func(s []byte) bool { return string(s) == plain }) {
			t.Fatalf("%s is none of the secrets %q", plain, secrets)
		}
	}
	if slices.ContainsFunc(secrets, func(s []byte) bool { return string(s) == "abc" || string(s) == "zzzzzz" }) {
		t.Fatalf("secrets %q", secrets)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	words := []string{"abcabcd", "cabxyz", "abcabcabc", "token-of-mine", "abc", "ab", "a", "c", "zzzzzz", "abcabc", "token-of-", "-", " \n", "é"}
	for range 20_000 {
		var plain []byte
		for range 1 + rng.IntN(8) {
			plain = append(plain, words[rng.IntN(len(words))]...)
		}
		want := maskWhole(plain, secrets)
		m := masker{secrets: secrets}
		var got []byte
		for rest := plain; len(rest) > 0; {
			n := 1 + rng.IntN(len(rest))
			got = append(got, m.write(rest[:n])...)
			rest = rest[n:]
		}
		got = append(got, m.rest()...)
		if string(got) != want {
			t.Fatalf("%q became %q, want %q", plain, got, want)
		}
	}
}

// maskWhole is a second, slow definition of masking: every byte that lies in an occurrence of
// a secret is hidden, and each stretch that overlapping occurrences cover is one mask.
func maskWhole(plain []byte, secrets [][]byte) string {
	hidden := make([]int, len(plain)) // 0 = shown, else the number of the stretch
	stretch, end := 0, 0
	for i := range plain {
		longest := 0
		for _, s := range secrets {
			if bytes.HasPrefix(plain[i:], s) {
				longest = max(longest, len(s))
			}
		}
		if longest > 0 {
			if i >= end {
				stretch++
			}
			end = max(end, i+longest)
		}
		if i < end {
			hidden[i] = stretch
		}
	}
	var out strings.Builder
	for i, b := range plain {
		switch {
		case hidden[i] == 0:
			out.WriteByte(b)
		case i == 0 || hidden[i-1] != hidden[i]:
			out.WriteString(maskText)
		}
	}
	return out.String()
}

func TestLooksSecret(t *testing.T) {
	for name, want := range map[string]bool{
		"GITHUB_TOKEN": true, "githubtoken": true, "AWS_SECRET_ACCESS_KEY": true, "DB_PASSWORD": true, "PGPASSWORD": true, "OPENAI_API_KEY": true,
		"MY_AUTH": true, "SENTRY_DSN": true, "PATH": false, "GIT_AUTHOR_NAME": false, "KEYBOARD": false, "MONKEY": false, "PWD": false, "OLDPWD": false,
		"API_KEYS": true, "MYSQL_PWD": true, "SSHKEY": true, "OPENAI_KEY2": true, "key1": true, "apiKey": true, "DBPASS": true, "JWTS": true, "MYPAT": true,
		"TURKEY_SIZE": false, "BYPASS_CACHE": false, "COMPASS": false, "SSH_AUTH_SOCK": false, "KEYMAP": false, "XKB_KEYBOARD": false, "AUTHOR": false,
		"PATTERN": false, "DISPATCH": false, "PASSENGERS": false, "HOME": false, "DISPLAY": false,
	} {
		if looksSecret(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

func TestTexts_MakeValidTextHoweverTheStreamIsCut(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		plain := make([]byte, rng.IntN(20))
		for i := range plain {
			plain[i] = []byte("aé€😀\xff\x80\xe2\xf0\x00")[rng.IntN(15)]
		}
		var one, many texts
		want := one.write(plain) + one.rest()
		got := ""
		for rest := plain; len(rest) > 0; {
			n := 1 + rng.IntN(len(rest))
			got += many.write(rest[:n])
			rest = rest[n:]
		}
		got += many.rest()
		if got != want || !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
			t.Fatalf("%q became %q in pieces and %q whole", plain, got, want)
		}
	}
}

func TestCut_KeepsTextAndCharacters(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("line\n", 50), strings.Repeat("é", 100), "é" + strings.Repeat("x", 98), strings.Repeat("x", 64)} {
		parts := cut(text, 32)
		if strings.Join(parts, "") != text {
			t.Errorf("%q became %q", text, parts)
		}
		for _, p := range parts {
			if len(p) > 32 || !utf8.ValidString(p) {
				t.Errorf("part %q", p)
			}
		}
	}
}

func TestTail_IsTheEndFromTheBeginningOfALine(t *testing.T) {
	tl := tail{most: 20}
	for i := range 100 {
		tl.add(fmt.Sprintf("\x1b[1mline %d\x1b[0m\n", i))
	}
	if got := tl.String(); got != "line 99" {
		t.Errorf("got %q", got)
	}
	tl = tail{most: 20}
	tl.add(" whole ")
	if got := tl.String(); got != "whole" {
		t.Errorf("got %q", got)
	}
}
