package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stint/api"
)

// anchor is where a file stands on the page.
func (f diffFile) anchor() string { return "#file-" + strconv.Itoa(f.n+1) }

// unfolded reports whether a file's diff is open at first: when it is short, alone, or spoken of.
func (f diffFile) unfolded() bool {
	if f.alone || len(f.rows) <= rowsFolded || f.form != nil || len(f.said) > 0 {
		return true
	}
	for _, r := range f.rows {
		if r.form != nil || len(r.said) > 0 {
			return true
		}
	}
	return false
}

// loose reports whether the open form stands at none of the files on the page.
func (c changesView) loose() bool {
	return c.form != nil && !slices.ContainsFunc(c.files, func(f diffFile) bool { return f.Path == c.form.path })
}

// commentURL is the address of the page with a form for a comment on a file, or on all of it.
func (c changesView) commentURL(path string) string {
	more := c.at.values()
	more.Set("comment", path)
	return filterURL(sessionURL(c.id), more, nil)
}

func (f *reviewForm) typedLine() string {
	if f.line == 0 {
		return ""
	}
	return strconv.FormatInt(f.line, 10)
}

func (f *reviewForm) lineField() Input {
	in := Input{ID: "comment-line", Name: "line", Label: "Line", Hint: "Empty = the file as a whole.", Value: f.typedLine(), Error: sentence(f.errors["line"])}
	if typed := f.typed.Get("line"); f.errors["line"] != "" && typed != "" {
		in.Value = typed
	}
	return in
}

func (f *reviewForm) textField() Input {
	in := Input{ID: "comment-text", Name: "text", Label: "Comment on all of it", Value: f.typed.Get("text"), Error: sentence(f.errors["text"]), Required: true}
	switch {
	case f.line > 0 && f.side == api.SideOld:
		in.Label = fmt.Sprintf("Comment on line %d as it was before", f.line)
	case f.line > 0:
		in.Label = fmt.Sprintf("Comment on line %d", f.line)
	case f.path != "":
		in.Label = "Comment on this file"
	}
	if gone := f.errors["path"]; gone != "" {
		in.Error = sentence("the file " + gone)
	}
	return in
}

// sendField is the text that stands before the comments.
func (c changesView) sendField() Input {
	return Input{ID: "review-text", Name: "text", Label: "Before them, if you like", Value: c.sending.typed.Get("text"), Error: sentence(c.sending.errors["text"])}
}

// draftWords name what a comment is about where that isn't plain to see.
func draftWords(d api.ReviewComment) string {
	if d.Path == "" {
		return "On all of it"
	}
	return api.Visible(d.Path) + ", " + strings.ToLower(lineWords(d.Line, d.Side))
}
