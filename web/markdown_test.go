package web

import (
	"strings"
	"testing"
)

// What would be expensive to parse is shown as it was written; what people and agents really
// write is rendered, even if it is long.
func TestRenderMarkdown_CostlyTextsAreShownAsTheyAre(t *testing.T) {
	for name, text := range map[string]string{
		"links": strings.Repeat("[a](", 15000), "brackets": strings.Repeat("[", 60000), "quotes": strings.Repeat(">", 30000) + "x",
		"numbered lists": strings.Repeat("1. ", 20000), "lists": "a\n\n" + strings.Repeat("- ", 30000), "mixed": strings.Repeat("> - 1) ", 8000),
	} {
		if got := RenderMarkdown(text); !strings.HasPrefix(got, "<pre>") || strings.Count(got, "<") != 2 {
			t.Errorf("%s: it became %.80q", name, got)
		}
	}
	for text, want := range map[string]string{
		strings.Repeat("[a](https://a.example/) ", 1000): "<a href",
		strings.Repeat("> ", 20) + "deep":                "<blockquote>",
		strings.Repeat("- a\n", 5000):                    "<li>",
		strings.Repeat("-", 5000):                        "<hr",
		strings.Repeat("**a** ", 5000):                   "<strong>",
	} {
		if got := RenderMarkdown(text); strings.HasPrefix(got, "<pre>") || !strings.Contains(got, want) {
			t.Errorf("%.40q became %.80q", text, got)
		}
	}
}
