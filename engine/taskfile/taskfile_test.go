package taskfile

import (
	"bytes"
	"io"
	"reflect"
	"testing"

	"stint/api"
)

// What is exported is imported as it was, and no cell is a formula to a spreadsheet.
func TestTaskFile_ComesBackAsItWas(t *testing.T) {
	t.Parallel()
	rows := []Row{}
	for _, text := range []string{
		"plain", "=1+1", "'=1+1", "''-x", "'quoted'", "+1", "-1", "@x", `say "hi", he said`, "two\nlines\n", "- a\n- b", "\ttab", "ünï ☃", "'",
	} {
		rows = append(rows, Row{Key: "T-1", TaskInput: api.TaskInput{
			Slug: "a-slug", Title: text, Description: text, State: api.TaskReview, Priority: "p1", Labels: api.Labels{"a", "b/c"},
			Assignee: "review", BlockedBy: []string{"T-2", "T-3"},
			Links: api.TaskLinks{{URL: "https://example.com/"}, {URL: "https://example.com/2", Title: "Two words, one comma"}},
		}})
	}
	empty := newRow(0)
	empty.Title = "Nothing else"
	rows = append(rows, empty)
	for name, write := range map[string]func(io.Writer, []Row) error{"JSON": WriteJSON, "CSV": WriteCSV} {
		var file bytes.Buffer
		if err := write(&file, rows); err != nil {
			t.Fatal(err)
		}
		got, bad, err := Read(file.Bytes())
		if err != nil || len(bad) > 0 || len(got) != len(rows) {
			t.Fatalf("%s: %d rows of %d, %v, %v", name, len(got), len(rows), bad, err)
		}
		for i := range got {
			got[i].Line = 0
			if !reflect.DeepEqual(got[i], rows[i]) {
				t.Errorf("%s: %+v comes back as %+v", name, rows[i], got[i])
			}
		}
	}
	for _, r := range rows {
		if cell := asText(r.Title); bytes.ContainsAny([]byte(cell[:1]), formulaStarts) {
			t.Errorf("a spreadsheet executes %q", cell)
		}
	}
}
