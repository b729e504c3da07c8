package api

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	"github.com/pb33f/libopenapi/what-changed/model"
)

// promised is the document as it was last promised to other programs. A release copies
// openapi.yaml over it; between releases only additions may follow.
//
//go:embed testdata/promised.yaml
var promised []byte

// breaking lists what in the new document would break a program written for the old one.
func breaking(t *testing.T, before, after []byte) (found []string) {
	t.Helper()
	old, err := libopenapi.NewDocument(before)
	if err != nil {
		t.Fatal(err)
	}
	now, err := libopenapi.NewDocument(after)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := libopenapi.CompareDocuments(old, now)
	if err != nil {
		t.Fatal(err)
	}
	if changes == nil {
		return nil
	}
	for _, c := range changes.GetAllChanges() {
		if c.Breaking && !asksLess(before, c) {
			line := "?"
			if c.Context != nil && c.Context.OriginalLine != nil {
				line = fmt.Sprint(*c.Context.OriginalLine)
			}
			found = append(found, fmt.Sprintf("line %s: %s %s: %q became %q", line, c.Path, c.Property, c.Original, c.New))
		}
	}
	return found
}

// asksLess reports whether a change only makes a field of a request optional, or accepts more
// kinds of values for it: its single type then becomes a list of them.
func asksLess(before []byte, c *model.Change) bool {
	if c.Property != "required" && c.Property != "type" || c.New != "" || c.Context == nil || c.Context.OriginalLine == nil {
		return false
	}
	lines := strings.Split(string(before), "\n")[:*c.Context.OriginalLine]
	for i := len(lines) - 1; i >= 0; i-- {
		if name := strings.TrimPrefix(lines[i], "    "); !strings.HasPrefix(name, " ") {
			name = strings.TrimSuffix(name, ":")
			return slices.ContainsFunc([]string{"Input", "Request", "Patch"}, func(end string) bool { return strings.HasSuffix(name, end) })
		}
	}
	return false
}

func TestOpenAPI_NothingPromisedIsBroken(t *testing.T) {
	for _, b := range breaking(t, promised, OpenAPIYAML()) {
		t.Errorf("a breaking change: %s", b)
	}
}

// The comparison must notice what it is there for, and nothing else.
func TestOpenAPI_BreakingChangesAreNoticed(t *testing.T) {
	doc := string(OpenAPIYAML())
	for name, edit := range map[string]struct {
		old, new string
		breaks   bool
	}{
		"an operation is gone":     {"  /api/v1/whoami:", "  /api/v1/who:", true},
		"a field is gone":          {"        triggered_at: {$ref: '#/components/schemas/Time'}\n", "", true},
		"a type is another":        {"        inSeconds: {type: integer, format: int64}", "        inSeconds: {type: string}", true},
		"a word of a list is gone": {"enum: [pending, running, complete, failed]", "enum: [pending, running, complete]", true},
		"a field more":             {"        inSeconds: {type: integer, format: int64}", "        inSeconds: {type: integer, format: int64}\n        more: {type: string}", false},
		"a request asks less":      {"      required: [promptId]\n", "", false},
		"a request takes null":     {"        finishOf: {type: string}\n", "        finishOf: {type: [string, 'null']}\n", false},
		"an answer says less":      {"      required: [session, changed]\n", "", true},
		"another description":      {"description: A page of agents.", "description: Some agents.", false},
	} {
		if !strings.Contains(doc, edit.old) {
			t.Errorf("%s: the document has no %q", name, edit.old)
			continue
		}
		found := breaking(t, OpenAPIYAML(), []byte(strings.Replace(doc, edit.old, edit.new, 1)))
		if (len(found) > 0) != edit.breaks {
			t.Errorf("%s: %v", name, found)
		}
	}
}
