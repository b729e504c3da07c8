package web

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stint/api"
)

// tones are a colour's values in light and dark.
type tones [2]string

var (
	declaration = regexp.MustCompile(`--([\w-]+):(?:light-dark\((#[0-9a-f]{6}),(#[0-9a-f]{6})\)|(#[0-9a-f]{6}))`)
	stateBlock  = regexp.MustCompile(`(?m)^\.s-(\w+)\{([^}]*)\}`)
)

func colours(css string) map[string]tones {
	found := map[string]tones{}
	for _, m := range declaration.FindAllStringSubmatch(css, -1) {
		if m[4] != "" {
			found[m[1]] = tones{m[4], m[4]}
			continue
		}
		found[m[1]] = tones{m[2], m[3]}
	}
	return found
}

func TestContrast_TextAndControls(t *testing.T) {
	css := string(readFile(t, "static/stint.css"))
	root := colours(css[strings.Index(css, ":root{"):strings.Index(css, "[data-theme=light]")])
	for _, c := range []struct {
		front, back string
		least       float64
	}{
		{"ink", "page", 7},
		{"ink", "sheet", 7},
		{"ink", "sunk", 7},
		{"ink", "hover", 7},
		{"ink", "wash", 7},
		{"muted", "page", 4.5},
		{"muted", "sheet", 4.5},
		{"muted", "sunk", 4.5},
		{"muted", "hover", 4.5},
		{"muted", "wash", 4.5},
		{"subtle", "page", 4.5},
		{"subtle", "sheet", 4.5},
		{"accent", "page", 4.5},
		{"accent", "sheet", 4.5},
		{"accent", "hover", 4.5},
		{"accent", "wash", 4.5},
		{"edge", "sheet", 3},
		{"edge", "page", 3},
		{"focus", "page", 3},
		{"focus", "sheet", 3},
		{"on-fill", "fill", 7},
		{"on-danger", "danger", 4.5},
		{"log-ink", "log", 7},
		{"log-dim", "log", 4.5},
	} {
		atLeast(t, c.front+" on "+c.back, root, c.front, c.back, c.least)
	}
	for i := range 16 {
		atLeast(t, fmt.Sprintf("ANSI colour %d on the log", i), root, fmt.Sprintf("a%d", i), "log", 4.5)
	}
}

func TestContrast_EightStates(t *testing.T) {
	css := string(readFile(t, "static/stint.css"))
	root := colours(css[strings.Index(css, ":root{"):strings.Index(css, "[data-theme=light]")])
	blocks := map[string]map[string]tones{}
	for _, m := range stateBlock.FindAllStringSubmatch(css, -1) {
		all := colours(m[2])
		for name, tone := range root {
			all[name] = tone
		}
		blocks[m[1]] = all
	}
	for _, s := range append(slices.Clone(api.Statuses), "marked") { // and what is complete, but no plain success
		c, ok := blocks[string(s)]
		if !ok {
			t.Fatalf("no colours for %s", s)
		}
		name := string(s)
		atLeast(t, name+": text on tint", c, "t", "tint", 6)
		atLeast(t, name+": text on sheet", c, "t", "sheet", 6)
		atLeast(t, name+": text on page", c, "t", "page", 6)
		atLeast(t, name+": text on hover", c, "t", "hover", 6)
		atLeast(t, name+": mark on sheet", c, "m", "sheet", 3)
		atLeast(t, name+": mark on page", c, "m", "page", 3)
	}
	waiting := blocks[string(api.AwaitingInput)]
	atLeast(t, "awaiting_input: text on its fill", waiting, "on-solid", "solid", 7)
	atLeast(t, "awaiting_input: rim on sheet", waiting, "rim", "sheet", 3)
}

func atLeast(t *testing.T, what string, c map[string]tones, front, back string, least float64) {
	t.Helper()
	f, b := c[front], c[back]
	if f[0] == "" || b[0] == "" {
		t.Errorf("%s: no such colour", what)
		return
	}
	for i, theme := range []string{"light", "dark"} {
		if got := ratio(f[i], b[i]); got < least {
			t.Errorf("%s, %s: %.2f, at least %.1f is needed (%s on %s)", what, theme, got, least, f[i], b[i])
		}
	}
}

func ratio(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(hex string) float64 {
	channel := func(at int) float64 {
		n, err := strconv.ParseUint(hex[at:at+2], 16, 8)
		if err != nil {
			panic(err)
		}
		v := float64(n) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*channel(1) + 0.7152*channel(3) + 0.0722*channel(5)
}

func TestContrast_RatioIsWCAGs(t *testing.T) {
	if got := ratio("#ffffff", "#000000"); math.Abs(got-21) > 0.001 {
		t.Errorf("black on white: %f", got)
	}
	if got := ratio("#767676", "#ffffff"); math.Abs(got-4.54) > 0.01 {
		t.Errorf("#767676 on white: %f", got)
	}
}
