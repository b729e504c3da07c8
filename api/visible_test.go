package api

import "testing"

func TestVisible_NothingHides(t *testing.T) {
	for text, want := range map[string]string{
		"ls -la\n\tpwd":                "ls -la\n\tpwd",
		"\x1b]0;rm -rf ~\x07ls":        `\x1b]0;rm -rf ~\x07ls`,
		"safe\rrm x":                   `safe\x0drm x`,
		"a\u202eb\u200bc\ufeff\u00adx": `a\u{202e}b\u{200b}c\u{feff}\u{ad}x`,
		"a\u00a0b\u2028c":              `a\u{a0}b\u{2028}c`,
		"\xff\xfe é \uFFFD 日本":         `\xff\xfe é ` + "\uFFFD" + ` 日本`,
		"\u009b31m":                    `\u{9b}31m`,
	} {
		if got := Visible(text); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
	}
}

// Two names that look the same are the same; what scripts and pictures need stays.
func TestOneLine_NothingUnseen(t *testing.T) {
	for text, line := range map[string]string{
		"a\u200bb": "ab", "a\u00adb": "ab", "\ufeffab": "ab", "ab\U000e0041\U000e007f": "ab", "a\u2060b": "ab", "a\u180eb": "ab", "a\u3164b": "ab",
		"a\u034fb": "ab", "a\u202eb": "ab", "a\u200db": "ab", "\u200cab": "ab", "می\u200c": "می", "a\ufe0fb": "ab", "a\U000e0100": "a",
		"a\nb": "a b", "a\tb": "a b", "a\u2028b": "a b", "a\x00b": "ab", "a\u009bb": "ab", "a\xffb": "a\uFFFDb", "é\u200d\u200dn": "én",
		"\x1b]0;PWN\x07go": "go", "\x1b[31mred\x1b[0m": "red", "\x1bx": "x", "👩\u200d\u200d💻": "👩\u200d💻",
	} {
		if OneLine(text) {
			t.Errorf("%+q can be a name", text)
		}
		if got := Line(text); got != line || !OneLine(got) {
			t.Errorf("%+q is made %+q, want %+q", text, got, line)
		}
	}
	for _, text := range []string{
		"", "nightly build", "żółw 🐢", "می\u200cخواهم", "👩\u200d💻", "👩🏽\u200d🚀", "❤\ufe0f\u200d🔥", "क\u094d\u200dष", "1\ufe0f\u20e3", "葛\U000e0100", "☺\ufe0e", "日本", "a\u00a0b", "\uFFFD",
	} {
		if !OneLine(text) || Line(text) != text {
			t.Errorf("%+q can't be a name", text)
		}
	}
}

// A path is valid unchanged, as long as it stays on its line.
func TestUnbroken(t *testing.T) {
	for text, want := range map[string]bool{"/a\u200b/b": true, "/é": true, "/a\n": false, "/\u202e": false, "/\x1b[m": false, "/\xff": false} {
		if Unbroken(text) != want {
			t.Errorf("%+q: %v", text, !want)
		}
	}
}

func TestBareURL_ShowsNoNameOrPassword(t *testing.T) {
	for text, want := range map[string]string{
		"https://x.test/a/@b?q=1#c":       "https://x.test/a/@b?q=1#c",
		"https://me:secret@x.test/a?b=@c": "https://x.test/a?b=@c",
		"https://secret@x.test":           "https://x.test",
		"https://me:sec/ret@x.test/a":     "https://…@x.test/a",
		"https://me:secret@x.test:port":   "https://…@x.test:port",
		"me:secret@x.test":                "…@x.test",
		"//me:secret@x.test/":             "//x.test/",
		"x.test":                          "x.test",
		"":                                "",
	} {
		if got := BareURL(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}
