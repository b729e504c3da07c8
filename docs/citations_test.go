package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stint/docs"
)

var (
	rule     = regexp.MustCompile(`(?m)^(?:\*\*|## )(\d+(?:\.\d+)?)[.*]`)
	inline   = regexp.MustCompile(`\*\*(\d+\.\d+)\*\*`)
	citation = regexp.MustCompile(`(?i)contract,?(?: chapter)? (\d+(?:\.\d+)?(?:(?:,| and) \d+\.\d+)*)`)
	number   = regexp.MustCompile(`\d+(?:\.\d+)?`)
)

// A comment that cites a rule of the contract cites one that is there.
func TestContract_EveryCitationIsFound(t *testing.T) {
	t.Parallel()
	text, err := docs.Files.ReadFile("contract.md")
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for _, found := range slices.Concat(rule.FindAllStringSubmatch(string(text), -1), inline.FindAllStringSubmatch(string(text), -1)) {
		rules = append(rules, found[1])
	}
	if len(rules) < 90 || !slices.Contains(rules, "4.2") || !slices.Contains(rules, "14") {
		t.Fatalf("the contract's rules are read wrongly: %q", rules)
	}
	cited := 0
	for path, source := range sources(t) {
		for _, found := range citation.FindAllStringSubmatch(source, -1) {
			for _, n := range number.FindAllString(found[1], -1) {
				cited++
				if !slices.Contains(rules, n) {
					t.Errorf("%s cites %q, the contract has no rule %s", path, found[0], n)
				}
			}
		}
	}
	if cited < 200 {
		t.Errorf("%d citations were found, there are more", cited)
	}
}

// sources are the texts of all files that have comments, by path.
func sources(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "bin" || (strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2)):
			return filepath.SkipDir
		case d.IsDir() || !slices.Contains([]string{".go", ".templ", ".sql", ".css", ".js", ".yaml", ".md", ""}, filepath.Ext(path)) || strings.HasSuffix(path, "_templ.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		// A comment that goes on in the next line is one text.
		out[path] = regexp.MustCompile(`\n\s*(?://|--|#|\*)\s*`).ReplaceAllString(string(text), " ")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var testName = regexp.MustCompile("`(Test[A-Z]\\w*_)(\\*|\\w+)`")

// A test that the page on testing names is there.
func TestTesting_EveryTestIsFound(t *testing.T) {
	t.Parallel()
	text, err := docs.Files.ReadFile("testing.md")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for path, source := range sources(t) {
		if strings.HasSuffix(path, "_test.go") {
			all.WriteString(source)
		}
	}
	named := testName.FindAllStringSubmatch(string(text), -1)
	if len(named) < 40 {
		t.Errorf("%d tests were found, there are more", len(named))
	}
	for _, n := range named {
		want := "func " + n[1]
		if n[2] != "*" {
			want += n[2] + "("
		}
		if !strings.Contains(all.String(), want) {
			t.Errorf("there is no %s%s", n[1], n[2])
		}
	}
}
