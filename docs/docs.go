// Package docs holds what users read beyond the README, so that the program can
// show it offline and in its own version.
package docs

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

// Files are the Markdown pages. The first line of each is its title.
//
//go:embed *.md
var Files embed.FS

// Document is one of the pages.
type Document struct {
	Name  string // the file's name without its extension
	Title string
	Body  []byte // Markdown, without the title
	Text  []byte // Markdown, all of it
}

// All are the documents by name.
func All() ([]Document, error) {
	names, err := fs.Glob(Files, "*.md")
	if err != nil {
		return nil, err
	}
	all := make([]Document, 0, len(names))
	for _, name := range names {
		text, err := Files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the document %s: %w", name, err)
		}
		title, body, _ := bytes.Cut(text, []byte("\n"))
		all = append(all, Document{Name: strings.TrimSuffix(name, ".md"), Title: strings.TrimPrefix(string(title), "# "), Body: body, Text: text})
	}
	return all, nil
}
