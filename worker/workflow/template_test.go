package workflow

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var filled = Variables{
	ID: "the-id", Identifier: "T-42", Title: "the title", Description: "the description", State: "todo", Labels: "a,b", Prompt: "the prompt", Attempt: "2",
}

func TestRender(t *testing.T) {
	for template, want := range map[string]string{
		"{{ issue.id }}|{{issue.identifier}}|{{  issue.title}}|{{issue.description }}": "the-id|T-42|the title|the description",
		"{{ issue.state }}|{{ issue.labels }}|{{ issue.prompt }}|{{ attempt }}":        "todo|a,b|the prompt|2",
		"{{ issue.url }} {{ nothing }} {{ issue.title | upcase }} {{}} {{ 7 }}":        "{{ issue.url }} {{ nothing }} {{ issue.title | upcase }} {{}} {{ 7 }}",
		"{{ issue.title":      "{{ issue.title",
		"{{ {{ attempt }} }}": "{{ 2 }}",
		"{% if attempt %}again {{ attempt }}{% endif %}":                                     "again 2",
		"{% if attempt %}again{% else %}first{% endif %}":                                    "again",
		"a{%- if attempt -%}b{%- endif -%}c":                                                 "abc",
		"{% if issue.title %}{% if attempt %}x{% else %}y{% endif %}{% else %}z{% endif %}!": "x!",
		"{% if issue.url %}{{ attempt }}{% else %}n{% endif %}":                              "{% if issue.url %}2{% else %}n{% endif %}",
		"{% if attempt %}{% if issue.priority > 1 %}p{% endif %}{% else %}z{% endif %}":      "{% if issue.priority > 1 %}p{% endif %}",
		"{% if attempt %}open":                                 "{% if attempt %}open",
		"{% if attempt %}a{% elsif issue.title %}b{% endif %}": "{% if attempt %}a{% elsif issue.title %}b{% endif %}",
		"{% for l in issue.labels %}{{ l }}{% endfor %}":       "{% for l in issue.labels %}{{ l }}{% endfor %}",
		"{% endif %}{% else %}":                                "{% endif %}{% else %}",
	} {
		if got := mustParse(t, template).Render(filled); got != want {
			t.Errorf("%s\n got %s\nwant %s", template, got, want)
		}
	}
	const both = "{% if attempt %}again{% else %}first{% endif %} {{ issue.title }}."
	if got, want := mustParse(t, both).Render(Variables{}), "first ."; got != want {
		t.Errorf("without a task: %q, want %q", got, want)
	}
}

// A template that says nothing, or leaves nothing said, counts as none: the prompt is used in
// its place.
func TestRender_NothingSaid(t *testing.T) {
	for _, template := range []string{
		"---\nhooks:\n  before_run: x\n---\n<!-- soon -->", "{% if attempt %}again{% endif %}<!-- x -->", "{{ attempt }}\u200b", "{% if attempt %}again{% else %}{{/* x */}}{% endif %}",
	} {
		if got := mustParse(t, template).Render(Variables{}); got != "" {
			t.Errorf("%q says %q", template, got)
		}
	}
	if got := mustParse(t, "---\n---\n\ufeff# go <!-- now -->\u200b\n").Render(filled); got != "# go <!-- now -->" {
		t.Errorf("%q", got)
	}
}

func TestRender_ValuesAreNeverExpandedAgain(t *testing.T) {
	const template = "A {{ issue.title }} B {% if issue.prompt %}{{ issue.prompt }}{% endif %} C"
	w := mustParse(t, template)
	value := rapid.SliceOfN(rapid.SampledFrom([]string{"{{ issue.id }}", "{{", "}}", "{%", "%}", "{% if attempt %}", "{% endif %}", "{% else %}", "x", "\n", "issue.id", " "}), 0, 8)
	rapid.Check(t, func(t *rapid.T) {
		title, prompt := strings.Join(value.Draw(t, "title"), ""), strings.Join(value.Draw(t, "prompt"), "")
		got := w.Render(Variables{ID: "SECRET", Title: title, Prompt: prompt})
		if want := strings.TrimSpace("A " + title + " B " + prompt + " C"); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}

func TestUnknown(t *testing.T) {
	w := mustParse(t, "{{ issue.title }} {{ issue.url }} {% if attempt %}{{ a.b }}{% else %}{{ issue.url }}{% for x in y %}{% endif %}")
	if got, want := w.Unknown(), []string{"{{ issue.url }}", "{{ a.b }}", "{% for x in y %}"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
