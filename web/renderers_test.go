package web

import (
	"bytes"
	"context"
	"html"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
	"stint/engine"
)

// What one text may cost to draw, whatever it says.
const (
	drawnText   = 64 << 10
	drawnCPU    = 200 * time.Millisecond
	drawnOutput = 4 << 20
	drawnMemory = 64 << 20 // allocated in all, which is more than is ever held at once
)

// renderers are all that turn somebody's text into a page.
var renderers = map[string]func(string) int{
	"markdown": func(s string) int { return len(RenderMarkdown(s)) },
	"output":   func(s string) int { return len(LogBlock{Anchor: "o1", Mark: "0:01", Lines: RenderANSI(s)}.html()) },
	"excerpt":  func(s string) int { return len(lastLineOf(s, 160)) + len(firstLine(s, 160)) },
	"plain":    func(s string) int { return len(PlainText(s)) },
	"code":     func(s string) int { return len(codeHTML(PlainText(s))) },
	"approval": func(s string) int { return len(codeHTML(api.Visible(s))) },
	"plan": func(s string) int {
		size := 0
		for _, step := range planOf(s) {
			size += len(html.EscapeString(step.text))
		}
		return size
	},
	"json": func(s string) int {
		text, err := json.Marshal(api.Session{Prompt: s}, jsontext.WithIndent("  "), jsontext.AllowInvalidUTF8(true))
		if err != nil {
			panic(err)
		}
		return len(html.EscapeString(string(text)))
	},
	"conversation": func(s string) int {
		w := newTalkWriter(engine.SessionView{})
		w.add(api.Item{Kind: api.ItemText, Text: s})
		w.add(api.Item{Kind: api.ItemToolCall, CallID: "1", Text: s})
		w.add(api.Item{Kind: api.ItemToolResult, CallID: "1", Text: s})
		w.add(api.Item{Kind: api.ItemThinking, Text: s})
		var out bytes.Buffer
		if err := talkEntries(w.entries()).Render(context.Background(), &out); err != nil {
			panic(err)
		}
		return out.Len()
	},
}

// tokens are what parsers of such texts look for.
var tokens = []string{
	"a", " ", "\n", "\n\n", "\t", "    ", "|", "|a", "|-", "-", ":-", "`", "``", "```\n", "~", "~~", "~~~\n", "*", "**", "***", "_", "__", "[", "]", "[a]", "[a]:", "[a](", "](b)", "![", "!", "(", ")",
	"<", "<a", "<a>", "</a>", "<!--", "-->", "<?", "<![CDATA[", "<!A", "<div>\n", "<a href=\"", "&", "&amp;", "&#x41;", "\\", "\\\n", "> ", ">", "- ", "+ ", "* ", "1. ", "1) ", "# ", "===\n", "---\n", "***\n",
	"http://a", "https://a.b/", "www.a.b", "a@b.c", "://", "\"", "'", "  \n", "{", "}", "[^1]", "é", "\u200b", "\u202e", "\xff", "\x00", "\x7f",
	"\x1b", "\x1b[", "\x1b[m", "\x1b[31m", "\x1b[1;3;4;9;41;91m", "\x1b[0;7m", "\x1b[A", "\x1b[999A", "\x1b[B", "\x1b[999B", "\x1b[C", "\x1b[159C", "\x1b[999D", "\x1b[160G", "\x1b[K", "\x1b[1K", "\x1b[E", "\x1b[99F", "\r", "\b",
	"\x1b]8;;https://a.b/\x07", "\x1b]8;;\x07", "\x1b]8;;https://a.b/" + strings.Repeat("c", 4000) + "\x07", "\x1b]", "\x1bP", "\x1b_", "\x1b[38;5;", "\x1b[38;2;1;2;3m", "x\n",
	"@@ -1", "@@ -1 +1 @@\n", "+", "-\n", "+\n", "diff --git a b\n", "*** Add File: a\n", "--- a\n", "+++ b\n",
}

// hostile is a text of 64 KiB that repeats a few of the tokens: one after the other, in
// growing runs, deeper and deeper, as a table, or after one long beginning.
func hostile(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 7))
	pick := func() string { return tokens[r.IntN(len(tokens))] }
	few := func() string {
		var s strings.Builder
		for range 1 + r.IntN(4) {
			s.WriteString(strings.Repeat(pick(), 1+r.IntN(3)))
		}
		return s.String()
	}
	fill := func(s string, size int) string { return strings.Repeat(s, max(1, size/max(1, len(s)))) }
	var out string
	switch r.IntN(8) {
	case 0:
		out = fill(few(), drawnText)
	case 1: // one half begins what the other half ends
		out = fill(few(), drawnText/2) + fill(few(), drawnText/2)
	case 2: // runs that grow
		var s strings.Builder
		a, b := pick(), pick()
		for n := 1; s.Len() < drawnText; n++ {
			s.WriteString(strings.Repeat(a, n) + b)
		}
		out = s.String()
	case 3: // deeper with each line
		var s strings.Builder
		a, b := pick(), few()
		for n := 1; s.Len() < drawnText; n++ {
			s.WriteString(strings.Repeat(a, n) + b + "\n")
		}
		out = s.String()
	case 4: // a table
		head, cell := few(), few()
		columns := 1 + r.IntN(12000)
		out = fill("|"+head, columns*(1+len(head))) + "\n" + fill("|-", columns*2) + "\n" + fill(cell+"\n", drawnText/2)
	case 5: // a long beginning that is used again and again
		out = "[a]: http://a/" + fill(pick(), drawnText/2) + "\n\n" + fill("[a]"+few(), drawnText/2)
	case 6: // all of them, at random
		var s strings.Builder
		for s.Len() < drawnText {
			s.WriteString(pick())
		}
		out = s.String()
	case 7: // few, at random
		set := []string{pick(), pick(), pick()}
		var s strings.Builder
		for s.Len() < drawnText {
			s.WriteString(set[r.IntN(len(set))])
		}
		out = s.String()
	}
	return out[:min(len(out), drawnText)]
}

// Whatever somebody writes, showing it costs a bounded amount of time, output and memory. A
// few texts in each run of the tests; STINT_RENDER_TEXTS=10000 tries that many, and then the
// CPU time is also checked against its bound.
func TestRenderers_NoTextCostsMoreThanItsBounds(t *testing.T) {
	n, cpu := 30, 10*drawnCPU // the race detector slows down what counts only its steps
	if long := os.Getenv("STINT_RENDER_TEXTS"); long != "" {
		var err error
		if n, err = strconv.Atoi(long); err != nil {
			t.Fatal(err)
		}
		cpu = drawnCPU
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for i := range n {
		seed := uint64(i)
		if n > 30 {
			seed += 1 << 32 // different from those of each run
		}
		costsLittle(t, strconv.FormatUint(seed, 10), hostile(seed), cpu)
	}
	for name, text := range costliest() {
		costsLittle(t, name, text, cpu)
	}
}

// costsLittle draws a text in all ways and checks what that costs.
func costsLittle(t *testing.T, name, text string, cpu time.Duration) {
	t.Helper()
	for kind, draw := range renderers {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := threadCPU()
		size := draw(text)
		took := threadCPU() - began
		runtime.ReadMemStats(&after)
		if memory := after.TotalAlloc - before.TotalAlloc; size > drawnOutput || memory > drawnMemory || took > cpu {
			t.Errorf("text %s as %s: %v of CPU, %d KiB out, %d MiB of memory: %.60q … %.60q", name, kind, took, size>>10, memory>>20, text, text[len(text)/2:])
		}
	}
}

// costliest are the texts that cost most before there were bounds, and those that come nearest
// to them now.
func costliest() map[string]string {
	repeat := func(s string, n int) string { return strings.Repeat(s, n/len(s)) }
	deeper := func(item string, levels int) string {
		var s strings.Builder
		for n := range levels {
			s.WriteString(strings.Repeat("  ", n) + item + "\n")
		}
		return s.String()
	}
	return map[string]string{
		"table of 8,000 columns":         repeat("|a", 16000) + "|\n" + repeat("|-", 16000) + "|\n" + repeat("a\n", 32000),
		"many tables":                    repeat("|a|b|c|d|\n|-|-|-|-|\n|\n|\n|\n\n", drawnText),
		"table of code with pipes":       "|a|\n|-|\n" + repeat("|`\\|`\n", drawnText-8),
		"address meant often":            "[a]: http://a/" + repeat("b", 32000) + "\n\n" + repeat("[a]", 990*3),
		"definitions without end":        repeat("[a]: x\n\"", 990*8),
		"list that gets deeper":          deeper("- a", 170) + repeat("\n", 30000),
		"quotes and lists, deeper":       deeper("> - a", 170),
		"deep list, lazy lines":          deeper("- a", 170) + repeat("b\n", 30000),
		"backticks of many lengths":      hostileRuns("`", "a "),
		"emphasis that nothing closes":   repeat("*a _b ~~c ", drawnText),
		"emphasis that closes wrongly":   repeat("a*b_", drawnText),
		"stars that close nothing":       repeat("* * * <a", drawnText),
		"tags in quotes":                 repeat("<a b='\" c=\"", drawnText),
		"tags without end":               repeat("<a b ", drawnText),
		"addresses without end":          repeat("_http://aaaaaaaaa", drawnText),
		"mail addresses without end":     repeat("_a", drawnText),
		"link in every column":           "\x1b]8;;https://a.b/" + strings.Repeat("c", 4000) + "\x07" + repeat("x\n", 60000),
		"link in every other cell":       "\x1b]8;;https://a.b/" + strings.Repeat("c", 4000) + "\x07" + repeat("x", 160) + "\x1b]8;;\x07\r" + repeat("\x1b[Cy", 60000),
		"another colour in every column": repeat("\x1b[1;3;4;9;41;31mx\x1b[32mx", drawnText),
		"spaces written by moves":        repeat("\x1b[159Cx\n", drawnText),
		"empty lines":                    repeat("\n", drawnText-1) + "x",
		"lines of a diff":                "@@ -1 +1 @@\n" + repeat("+\n", drawnText-12),
	}
}

// hostileRuns are runs of a token that get longer and longer.
func hostileRuns(token, between string) string {
	var s strings.Builder
	for n := 1; s.Len() < drawnText-n; n++ {
		s.WriteString(strings.Repeat(token, n) + between)
	}
	return s.String()
}
