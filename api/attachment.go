package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// The limits of the files that come with one prompt or message.
const (
	MaxFiles     = 8
	MaxFileBytes = 5 << 20  // of each
	MaxFilesSize = 10 << 20 // bytes of all
	maxFileName  = 120      // bytes
)

// FileInput is a file or an image that a person gives with a prompt or a message.
type FileInput struct {
	Name string `json:"name"` // without folders
	Data []byte `json:"data"` // base64 in JSON
}

// Attachment is a file or an image that came with a prompt or a message.
type Attachment struct {
	ID        AttachmentID `json:"id"`
	SessionID SessionID    `json:"sessionId"`
	MessageID MessageID    `json:"messageId,omitzero"` // zero = it came with the session's prompt
	Name      string       `json:"name"`
	Type      string       `json:"type"` // the media type as its bytes say it
	Size      int64        `json:"size"` // bytes
}

// shownImages are the images that browsers show and models take.
var shownImages = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// Image reports whether it may be shown as an image. What can hold scripts never is.
func (a Attachment) Image() bool { return slices.Contains(shownImages, a.Type) }

// FileType is the media type of a file by its bytes: one of the images that may be shown, PDF, plain
// text, or bytes. What a browser would run is plain text.
func FileType(data []byte) string {
	kind, _, _ := strings.Cut(http.DetectContentType(data), ";")
	switch {
	case slices.Contains(shownImages, kind), kind == "application/pdf":
		return kind
	case utf8.Valid(data) && !slices.Contains(data, 0):
		return "text/plain"
	}
	return "application/octet-stream"
}

// CheckFiles refuses files that are too many, too large, or named so that they can't be written into
// one folder.
func (v *Invalid) CheckFiles(files []FileInput) {
	if len(files) > MaxFiles {
		v.Add("files", fmt.Sprintf("are %d; at most %d fit", len(files), MaxFiles))
	}
	all, names := 0, map[string]bool{}
	for i, f := range files {
		field := fmt.Sprintf("files[%d].", i)
		v.CheckText(field+"name", f.Name, maxFileName)
		v.CheckLine(field+"name", f.Name)
		switch name := strings.ToLower(f.Name); {
		case strings.TrimSpace(f.Name) != f.Name || f.Name == "" || strings.HasPrefix(f.Name, ".") || strings.ContainsAny(f.Name, `/\`):
			v.Add(field+"name", "must be a file's name: without folders, spaces around it, or a dot before it")
		case names[name]:
			v.Add(field+"name", "is given twice: name them apart")
		default:
			names[name] = true
		}
		all += len(f.Data)
		switch {
		case len(f.Data) == 0:
			v.Add(field+"data", "is empty")
		case len(f.Data) > MaxFileBytes:
			v.Add(field+"data", fmt.Sprintf("has %d bytes; at most %d fit", len(f.Data), MaxFileBytes))
		}
	}
	if all > MaxFilesSize {
		v.Add("files", fmt.Sprintf("have %d bytes together; at most %d fit", all, MaxFilesSize))
	}
}

// Attachments are the files of a session: those of its prompt, then those of its messages.
type Attachments struct {
	Items []Attachment `json:"items"`
}
