package main

import (
	"strings"
	"testing"
)

func TestPlain_LeavesNothingThatActsOnATerminal(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b[31mb\x1b[0mc":         "abc",
		"one\ntwo\tthree":            "one two three",
		"\x1b]52;c;aGk=\x07clip":     "clip",
		"bell\x07 back\x08 c1\u009b": "bell back c1",
		"żółw 🐢":                     "żółw 🐢",
		"safe\u202egnp.exe\u2066":    "safegnp.exe",
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestOutput_KeepsWhatTheReaderWants(t *testing.T) {
	const in = "\x1b[1;32mok\x1b[0m \x1b]0;title\x07\x1b[2Jli\u202ene\u2066\r\n\u200b\x1b[>4;2mend \x1b]52;c;aGk=\x1b\\é\x07"
	for _, c := range []struct {
		keep keep
		want string
	}{
		{keepText, "ok line\r\n\u200bend é"},
		{keepColor, "\x1b[1;32mok\x1b[0m line\r\n\u200bend é"},
		{keepAll, in},
	} {
		for size := 1; size <= len(in); size++ {
			var b strings.Builder
			o := output{w: &b, keep: c.keep}
			for rest := in; rest != ""; {
				n := min(size, len(rest))
				for n < len(rest) && rest[n]&0xc0 == 0x80 {
					n++ // the coordinator never cuts a rune
				}
				if err := o.write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if got := b.String(); got != c.want {
				t.Fatalf("keep %d in pieces of %d: %q, want %q", c.keep, size, got, c.want)
			}
		}
	}
}

func TestOutput_ResetsAColourThatWasLeftOn(t *testing.T) {
	var b strings.Builder
	o := output{w: &b, keep: keepColor}
	if err := o.write("\x1b[31mred"); err != nil {
		t.Fatal(err)
	}
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "\x1b[31mred\x1b[0m"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOpening_SaysHowMuchThereIs(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "one": "one", "one\n": "one", "\n one \n\n": "one", "one\ntwo\n\nthree": "one … (3 lines; --json has all)",
	} {
		if got := opening(text); got != want {
			t.Errorf("%q begins %q, want %q", text, got, want)
		}
	}
}
