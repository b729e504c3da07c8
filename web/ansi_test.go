package web

import (
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestRenderANSI(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"plain", "a\nb\n", []string{"a", "b"}},
		{"no line end", "a\nb", []string{"a", "b"}},
		{"empty line", "a\n\nb\n", []string{"a", "", "b"}},
		{"a line that spells a space entity", "&nbsp;\n", []string{"&amp;nbsp;"}},
		{"colour", "\x1b[31mred\x1b[0m plain", []string{`<span class="term-fg31">red</span> plain`}},
		{"bold and bright", "\x1b[1;92mok\x1b[0m", []string{`<span class="term-fgi92 term-fg1">ok</span>`}},
		{"256 colours become the nearest of ours", "\x1b[38;5;196mx\x1b[0m", []string{`<span class="term-fgi91">x</span>`}},
		{"24-bit colour too", "\x1b[38;2;0;0;240mx\x1b[0m", []string{`<span class="term-fg34">x</span>`}},
		{"24-bit background with more after it", "\x1b[48;2;0;205;0;1mx\x1b[0m", []string{`<span class="term-bg42 term-fg1">x</span>`}},
		{"progress bar", "10%\r55%\r100%\ndone\n", []string{"100%", "done"}},
		{"erase line", "working\r\x1b[Kdone\n", []string{"done"}},
		{"windows line ends", "a\r\nb\r\n", []string{"a", "b"}},
		{"web link", "\x1b]8;;https://example.test/a?b=1\x07here\x1b]8;;\x07", []string{`<a rel="nofollow noopener noreferrer ugc" href="https://example.test/a?b=1">here</a>`}},
		{"window title", "\x1b]0;evil title\x07text", []string{"text"}},
		{"private mode", "\x1b[?25ltext\x1b[?25h", []string{"text"}},
		{"device control", "\x1bPq#0;2;0;0;0\x1b\\text", []string{"text"}},
		{"sequence without end", "before\x1b]1337;File=inline=1:", []string{"before]1337;File=inline=1:"}},
		{"invalid bytes", "a\xff\xfeb", []string{"a\uFFFDb"}},
		{"controls and bells", "a\x00\x07\x0eb\u009bc", []string{"abc"}},
		{"marks that turn text round", "user\u202etxt.exe", []string{"usertxt.exe"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := RenderANSI(c.in)
			if strings.Join(got, "⏎") != strings.Join(c.want, "⏎") || len(got) != len(c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestRenderANSI_ClearScreenHidesNothing(t *testing.T) {
	got := strings.Join(RenderANSI("evidence\n\x1b[2J\x1b[3J\x1b[H\x1bcafter\n"), "\n")
	if !strings.Contains(got, "evidence") || !strings.Contains(got, "after") {
		t.Errorf("got %q", got)
	}
}

// attacks are outputs that would do harm if anything of them got through.
var attacks = []string{
	"<script>alert(1)</script>",
	"<img src=x onerror=alert(1)>",
	`"><svg onload=alert(1)>`,
	"</p></div><form action=/x>",
	"\x1b[31m<b style=color:red>\x1b[0m",
	"\x1b]8;;javascript:alert(1)\x07click\x1b]8;;\x07",
	"\x1b]8;;JaVaScRiPt:alert(1)\x1b\\click\x1b]8;;\x1b\\",
	"\x1b]8;; java\tscript:alert(1)\x07click\x1b]8;;\x07",
	"\x1b]8;;data:text/html,<script>alert(1)</script>\x07click\x1b]8;;\x07",
	"\x1b]8;;//evil.test/x\x07click\x1b]8;;\x07",
	"\x1b]8;;https://x.test/\"onmouseover=\"alert(1)\x07click\x1b]8;;\x07",
	"\x1b]1337;File=name=MS5naWY=;inline=1:R0lGODlhAQABAAAAACw=\x07",
	"\x1b]1338;url=https://evil.test/pixel.png;alt=x\x07",
	"\x1b]1339;url=javascript:alert(1);content=<b>x</b>\x07",
	"\x1b]1339;url=https://evil.test/;content=x\x1b\\",
	"\x1b_bk;t=<script>\x07",
	"\x1b_bk;t=0\x07x",
	"\x1b]52;c;ZXZpbA==\x07",
	"\u009d1338;url=https://evil.test/x\u009c",
	"\x9d1338;url=https://evil.test/x\x9c",
	"\x1b]8;;https://a.test/;b;c\x07x",
	"\x1b[<script>m",
	"\x1b[38;5;<b>mx",
	"\x1b[38;2;1;2;3;4;5;6;7;8;38;48;38;5;1mx",
}

// harmless checks that html holds escaped text, spans with our classes and
// links to the web, and nothing else.
func harmless(t *testing.T, in, html string) {
	t.Helper()
	if !utf8.ValidString(html) {
		t.Errorf("from %q: not valid UTF-8: %q", in, html)
	}
	rest := allowedTags.ReplaceAllString(html, "")
	if strings.ContainsAny(rest, "<>\"'") {
		t.Errorf("from %q: more than text is left of %q: %q", in, html, rest)
	}
	if strings.ContainsFunc(html, func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' || r == 0x7f }) {
		t.Errorf("from %q: control characters in %q", in, html)
	}
}

var allowedTags = regexp.MustCompile(`<span class="[\w -]*">|</span>|<a rel="nofollow noopener noreferrer ugc" href="https?:&#47;&#47;[^"<>]*">|<a rel="nofollow noopener noreferrer ugc" href="https?://[^"<>]*">|<a rel="nofollow noopener noreferrer ugc" href="">|</a>`)

func TestRenderANSI_NothingHarmfulGetsThrough(t *testing.T) {
	for _, in := range attacks {
		harmless(t, in, strings.Join(RenderANSI(in), "\n"))
	}
	harmless(t, "all at once", strings.Join(RenderANSI(strings.Join(attacks, "\n")), "\n"))
}

// A sequence may have any number of parameters; the parser has room for some.
func TestRenderANSI_SequenceOfManyParametersIsDropped(t *testing.T) {
	for n := range 3 * maxParams {
		for _, separator := range []string{"1;", ";", "1:", ":"} {
			for _, in := range []string{"\x1b[" + strings.Repeat(separator, n) + "1m", "\x1b[?" + strings.Repeat(separator, n) + "h", "\x1bP" + strings.Repeat(separator, n) + "1qx\x1b\\"} {
				if got := PlainText(in + "text"); !strings.HasSuffix(got, "text") || len(got) > len("text")+2 {
					t.Errorf("%q shows %q", in, got)
				}
				harmless(t, in, strings.Join(RenderANSI(in+"text"), "\n"))
			}
		}
	}
}

// Each is read once, whatever began before it: if the rest of the text were read from every
// one of them, a megabyte would take minutes.
func TestRenderANSI_SequencesWithoutEndCostTheirLength(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, begun := range []string{"\x1b]", "\x1b]8;;a", "\x1b]\x1b", "\x1bP", "\x1b_", "\x1b^", "\x1bX", "\x1b[", "\x1b[1;", "\x1b", "\x1b ", "\u009d", "\x1b];;;;"} {
		text := strings.Repeat(begun, 1<<20/len(begun))
		before := threadCPU()
		PlainText(text)
		if took := threadCPU() - before; took > 30*time.Second {
			t.Errorf("1 MiB of %q takes %v", begun, took)
		}
	}
}

func FuzzRenderANSI(f *testing.F) {
	for _, in := range attacks {
		f.Add(in)
	}
	f.Add("\x1b[" + strings.Repeat("1;", 40) + "m")
	f.Add("\x1b[999999999A\x1b[999999999B\x1b[999999999C\x1b[999999999Gx")
	f.Fuzz(func(t *testing.T, in string) {
		harmless(t, in, strings.Join(RenderANSI(in), "\n"))
		if plain := PlainText(in); strings.ContainsRune(plain, '\x1b') {
			t.Errorf("PlainText(%q) = %q", in, plain)
		}
	})
}

func TestPlainText(t *testing.T) {
	if got := PlainText("\x1b[31mred\x1b[0m \x1b]8;;https://a.test\x07link\x1b]8;;\x07\n"); got != "red link\n" {
		t.Errorf("got %q", got)
	}
}
