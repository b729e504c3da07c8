//go:build screenshots

package web

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// Writes a picture of every page in both themes and three widths into STINT_SCREENSHOTS, named by
// address, theme and width: for people, who look at them before a release.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("STINT_SCREENSHOTS")
	if dir == "" {
		t.Fatal("STINT_SCREENSHOTS says where to: use make screenshots")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := newFixture(t, fixtureEnd)
	b := openTab(t, s.serve(t))
	b.allow("404")
	ids := map[string]string{}
	for _, path := range s.everyPage(t) {
		b.open(path)
		name := notInNames.ReplaceAllString(strings.ToLower(path), "-")
		for _, l := range []look{{"light", 1280, ""}, {"dark", 1280, ""}, {"light", 768, ""}, {"light", 390, ""}, {"dark", 390, ""}} {
			b.see(l)
			image, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			file := fmt.Sprintf("%s-%s-%d.png", strings.Trim("page"+name, "-"), l.scheme, l.width)
			if was := ids[file]; was != "" {
				t.Fatalf("%s and %s have one name", was, path)
			}
			ids[file] = path
			if err := os.WriteFile(filepath.Join(dir, file), image, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
