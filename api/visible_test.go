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
