package api

import (
	"strconv"
	"strings"
)

// PatchRow is one line of a unified diff.
type PatchRow struct {
	Kind byte   // ' ', '+', '-', '@' for the head of a hunk, '\\' for a note such as a missing end of line
	Text string // without the mark
	Old  int64  // its number in the old file, 0 = none
	New  int64  // its number in the new file, 0 = none
}

// PatchRows reads the hunks of a unified diff. Lines before the first hunk are left out, and what
// is none is read as context.
func PatchRows(patch string) (rows []PatchRow) {
	var was, is int64
	in := false
	for line := range strings.Lines(patch) {
		line = strings.TrimSuffix(line, "\n")
		if a, b, ok := hunkHead(line); ok {
			was, is, in = a, b, true
			rows = append(rows, PatchRow{Kind: '@', Text: line})
			continue
		}
		if !in {
			continue
		}
		r := PatchRow{Kind: ' ', Text: line}
		if line != "" {
			r.Kind, r.Text = line[0], line[1:]
		}
		switch r.Kind {
		case '+':
			r.New = is
			is++
		case '-':
			r.Old = was
			was++
		case '\\':
		default:
			r.Kind, r.Old, r.New = ' ', was, is
			was++
			is++
		}
		rows = append(rows, r)
	}
	return rows
}

// hunkHead reads where a hunk begins: "@@ -1,2 +3,4 @@".
func hunkHead(line string) (was, is int64, ok bool) {
	rest, ok := strings.CutPrefix(line, "@@ -")
	if !ok {
		return 0, 0, false
	}
	left, rest, ok := strings.Cut(rest, " +")
	if !ok {
		return 0, 0, false
	}
	right, _, ok := strings.Cut(rest, " @@")
	if !ok {
		return 0, 0, false
	}
	start := func(span string) (int64, error) {
		first, _, _ := strings.Cut(span, ",")
		return strconv.ParseInt(first, 10, 64)
	}
	was, err := start(left)
	if err != nil {
		return 0, 0, false
	}
	is, err = start(right)
	return was, is, err == nil
}

// PatchLine returns a line of a diff by its number on one side; false when the diff doesn't show
// it.
func PatchLine(patch string, side ReviewSide, number int64) (string, bool) {
	for _, r := range PatchRows(patch) {
		at := r.New
		if side == SideOld {
			at = r.Old
		}
		if at == number && number > 0 {
			return r.Text, true
		}
	}
	return "", false
}
