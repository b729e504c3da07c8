package docs_test

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stint/api"
	"stint/docs"
)

// Where the code names what a session can end with. What the worker gives is in
// capitals, what the coordinator gives isn't.
var endings = map[string]*regexp.Regexp{
	"worker": regexp.MustCompile(`(?m)^\tCode\w+ *= "([A-Z_]+)"`),
	"engine": regexp.MustCompile(`(?:ErrorCode = |codeGivenBack *= |cancelOpen\([^"\n]*|ending\{)"([a-z_]+)"`),
}

// All codes and outcomes that Stint itself gives are in the OpenAPI document and in the
// pages that people read, and nothing else is.
func TestCodes_ThoseOfEndedSessionsAreAllDocumented(t *testing.T) {
	t.Parallel()
	given := map[string]bool{"cancelled": true, "stopped": true} // by what a person asked for
	for path, source := range sources(t) {
		slashed := filepath.ToSlash(path)
		for folder, find := range endings {
			if !strings.Contains(slashed, folder+"/") || strings.HasSuffix(slashed, "_test.go") || strings.Contains(slashed, "test/") {
				continue
			}
			for _, found := range find.FindAllStringSubmatch(source, -1) {
				given[found[1]] = true
			}
		}
	}
	page := read(t, "errors.md")
	page = page[strings.Index(page, "## Why a session ended"):strings.Index(page, "## Why a request")]
	for code := range given {
		if !strings.Contains(page, "`"+code+"`") {
			t.Errorf("errors.md doesn't name %s", code)
		}
	}
	want := slices.Sorted(maps.Keys(given))
	if got := examplesOf(t, "    Failure:\n", "code:"); !slices.Equal(got, want) {
		t.Errorf("the OpenAPI document names the codes\n%q, the code gives\n%q", got, want)
	}
	reported := []string{api.OutcomeStopped, api.OutcomeSuccess, api.OutcomeUnfinished}
	outcomes := slices.Concat([]string{api.OutcomeStopped, api.OutcomeSuccess}, api.MarkedOutcomes)
	slices.Sort(outcomes)
	for schema, want := range map[string][]string{"    Session:\n": outcomes, "    CompleteRequest:\n": reported} {
		if got := examplesOf(t, schema, "        outcome:"); !slices.Equal(got, want) {
			t.Errorf("%s has the outcomes %q, want %q", strings.TrimSpace(schema), got, want)
		}
	}
	protocol := read(t, "worker-protocol.md")
	for _, outcome := range outcomes {
		if !strings.Contains(protocol, "`"+outcome+"`") {
			t.Errorf("worker-protocol.md doesn't name %s", outcome)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := docs.Files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var examples = regexp.MustCompile(`examples: \[([^\]]*)\]`)

// examplesOf are the examples of a property of a schema, sorted.
func examplesOf(t *testing.T, schema, property string) []string {
	t.Helper()
	_, text, found := strings.Cut(string(api.OpenAPIYAML()), "\n"+schema)
	if !found {
		t.Fatalf("there is no schema %s", schema)
	}
	_, text, found = strings.Cut(text, property)
	list := examples.FindStringSubmatch(text)
	if !found || list == nil {
		t.Fatalf("%s has no examples of %s", schema, property)
	}
	return slices.Sorted(slices.Values(strings.Split(list[1], ", ")))
}
