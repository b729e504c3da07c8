package agent

import (
	"encoding/base64"
	"unicode/utf8"

	"stint/api"
	"stint/worker/regular"
)

// File is a file or an image that people gave. Its name is theirs; its place is the worker's.
type File struct {
	Name string
	Path string // absolute
	Type string // the media type as its bytes say it
}

// image is the file's bytes in base64 if models take it as an image.
func (f File) image() (data string, is bool) {
	if !(api.Attachment{Type: f.Type}).Image() {
		return "", false
	}
	raw, err := regular.Read(f.Path)
	if err != nil {
		return "", false // the turn names it all the same
	}
	return base64.StdEncoding.EncodeToString(raw), true
}

// claudeContent is what is said as Claude Code takes it: a text, or blocks where images come with it.
func claudeContent(said Said) any {
	blocks := []any{map[string]any{"type": "text", "text": said.Text}}
	for _, f := range said.Files {
		if data, is := f.image(); is {
			blocks = append(blocks, map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": f.Type, "data": data}})
		}
	}
	if len(blocks) == 1 {
		return said.Text
	}
	return blocks
}

// codexInput is what is said as Codex takes it. It reads images itself.
func codexInput(said Said) []any {
	out := []any{map[string]any{"type": "text", "text": said.Text}}
	for _, f := range said.Files {
		if (api.Attachment{Type: f.Type}).Image() {
			out = append(out, map[string]any{"type": "localImage", "path": f.Path})
		}
	}
	return out
}

// acpEmbedded bounds, in bytes, the texts that are put into an ACP turn: a program reads longer ones
// by itself.
const acpEmbedded = 64 << 10

// acpBlocks are the files as the Agent Client Protocol takes them, where the program says that it
// does.
func acpBlocks(files []File, images, embedded bool) (out []any) {
	for _, f := range files {
		if data, is := f.image(); is {
			if images {
				out = append(out, map[string]any{"type": "image", "mimeType": f.Type, "data": data})
			}
			continue
		}
		raw, err := regular.Read(f.Path)
		if embedded && err == nil && f.Type == "text/plain" && len(raw) <= acpEmbedded && utf8.Valid(raw) {
			out = append(out, map[string]any{"type": "resource", "resource": map[string]any{
				"uri": "file://" + f.Path, "mimeType": f.Type, "text": string(raw),
			}})
		}
	}
	return out
}
