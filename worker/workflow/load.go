package workflow

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"
)

// MaxSize bounds a workflow file, in bytes, and MaxFront its front matter: the cost of parsing
// a hostile text grows with the square of its length.
const (
	MaxSize  = 1 << 20
	MaxFront = 32 << 10
)

// Workflow is one reading of a file. It is never changed.
type Workflow struct {
	Path     string // absolute, as the owner named it
	Config   Config
	Template string    // the body, trimmed; empty when it says nothing
	Ignored  []Ignored // fields without effect, in the file's order
	Content  [sha256.Size]byte

	said   fields // the supported fields that the file sets, as written
	origin origin
}

// Ignored is a field of the front matter that has no effect.
type Ignored struct {
	Field  string // as tracker.kind
	Reason string // one sentence
	Line   int
}

// origin is the base for relative and variable paths of a file.
type origin struct {
	dir string              // the file's folder
	env func(string) string // a variable's value, "" when there is none
}

// Load reads a workflow file. path is absolute. env looks up the variables that may appear in
// paths: $NAME, and HOME for ~; it should know none that are secret.
//
// The error is a *Error.
func Load(path string, env func(string) string) (Workflow, error) {
	content, err := read(path)
	if err != nil {
		return Workflow{}, err
	}
	return parse(path, content, env)
}

// read takes the content of a regular file and of nothing else: a pipe or a device by that
// name could block the worker or never end.
func read(path string) ([]byte, error) {
	missing := func(format string, args ...any) error {
		return &Error{Code: Missing, Path: path, Problems: []Problem{{Message: fmt.Sprintf(format, args...)}}}
	}
	if !filepath.IsAbs(path) {
		return nil, missing("the path is not absolute")
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, missing("the file does not exist")
		}
		return nil, missing("the file can't be read: %v", cause(err))
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, missing("the file can't be read: %v", cause(err))
	}
	if !info.Mode().IsRegular() {
		return nil, missing("it is not a file")
	}
	content, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	switch {
	case err != nil:
		return nil, missing("the file can't be read: %v", cause(err))
	case len(content) > MaxSize:
		return nil, missing("the file is larger than %d KiB", MaxSize>>10)
	}
	return content, nil
}

// cause strips the operation and the path from a file error; the sentence already has them.
func cause(err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// parse makes a workflow of a file's content.
func parse(path string, content []byte, env func(string) string) (Workflow, error) {
	w := Workflow{Path: path, Content: sha256.Sum256(content), origin: origin{filepath.Dir(path), env}}
	bad := func(code Code, problems ...Problem) (Workflow, error) {
		return Workflow{}, &Error{Code: code, Path: path, Problems: problems}
	}
	if !utf8.Valid(content) {
		return bad(Unparsable, Problem{Message: "the file is not UTF-8 text"})
	}
	front, body := split(string(bytes.TrimPrefix(content, []byte("\ufeff"))))
	if len(front) > MaxFront {
		return bad(Unparsable, Problem{Message: fmt.Sprintf("the front matter is longer than %d KiB; is the --- after it missing?", MaxFront>>10)})
	}
	if w.Template = strings.TrimFunc(body, unseen); !says(w.Template) {
		w.Template = ""
	}
	f, err := readFront(front)
	if err != nil {
		return bad(err.code, Problem{Line: err.line, Message: err.message})
	}
	w.said, w.Ignored = f.said, f.ignored
	config, problems := w.said.config(w.origin)
	problems = append(f.problems, problems...)
	if len(problems) > 0 {
		for i := range problems {
			problems[i].Line = f.lines[problems[i].Field]
		}
		return bad(Invalid, problems...)
	}
	w.Config = config
	if w.Template == "" && len(w.said) == 0 && len(w.Ignored) == 0 {
		return bad(Unparsable, Problem{Message: "the file says nothing: write the template of the prompt into it, below settings between two lines of ---, or remove the file"})
	}
	return w, nil
}

// split separates the front matter from the body. A file whose first line isn't --- has none;
// one whose front matter is never closed has no body, as in Symphony.
func split(text string) (front, body string) {
	first, rest, _ := strings.Cut(text, "\n")
	if !isFence(first) {
		return "", text
	}
	at := 0
	for line := range strings.Lines(rest) {
		if isFence(line) {
			return rest[:at], rest[at+len(line):]
		}
		at += len(line)
	}
	return rest, ""
}

func isFence(line string) bool { return strings.TrimRight(line, "\r\n") == "---" }

// Says reports whether the file sets a supported field, such as codex.turn_timeout_ms,
// rather than leaving it to its default.
func (w Workflow) Says(field string) bool {
	_, ok := w.said[field]
	return ok
}

// Code says what is wrong with a file. The words are Symphony's.
type Code string

// The codes.
const (
	Missing    Code = "missing_workflow_file"
	Unparsable Code = "workflow_parse_error"
	NotAMap    Code = "workflow_front_matter_not_a_map"
	Invalid    Code = "invalid_workflow_config"
)

// Error says why a file can't be used.
type Error struct {
	Code     Code
	Path     string
	Problems []Problem // at least one
}

// Problem is one thing that is wrong with a file.
type Problem struct {
	Field   string // such as hooks.timeout_ms; empty when it is about the whole file
	Line    int    // of the file, from 1; 0 when there is none
	Message string // what is wrong, beginning in lower case
}

// String names the field and the line.
func (p Problem) String() string {
	text := p.Message
	if p.Field != "" {
		text = p.Field + ": " + text
	}
	if p.Line > 0 {
		text += fmt.Sprintf(" (line %d)", p.Line)
	}
	return text
}

// Error is the problems on one line.
func (e *Error) Error() string {
	var all []string
	for _, p := range e.Problems {
		all = append(all, p.String())
	}
	return fmt.Sprintf("%s: %s: %s", e.Path, e.Code, strings.Join(all, "; "))
}
