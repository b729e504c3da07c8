package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"

	"stint/api"
	"stint/engine"
)

// maxFilled bounds what a form with files may send.
const maxFilled = maxForm + api.MaxFilesSize + api.MaxFiles<<10

// takesFiles reports whether the form of an address may come with files.
func takesFiles(path string) bool {
	return strings.HasSuffix(path, "/run") || strings.HasSuffix(path, "/say")
}

// readFilled reads a form that may come with files. It stays in memory: nothing is written to a disk
// where others might read it.
func readFilled(r *http.Request) error {
	err := r.ParseMultipartForm(maxFilled)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return api.Refuse(api.CodeTooLarge, fmt.Sprintf("The form is larger than it may be: files have at most %d MiB each, and %d MiB together.", api.MaxFileBytes>>20, api.MaxFilesSize>>20))
	case err != nil:
		return api.Refuse(api.CodeMalformed, "The form can't be read.")
	}
	return nil
}

// filesFrom are the files of the form. A field that was left empty has none.
func (v *visit) filesFrom() (out []api.FileInput, err error) {
	if v.r.MultipartForm == nil {
		return nil, nil
	}
	for _, h := range v.r.MultipartForm.File["files"] {
		if h.Filename == "" && h.Size == 0 {
			continue
		}
		data, err := contents(h)
		if err != nil {
			return nil, err
		}
		out = append(out, api.FileInput{Name: h.Filename, Data: data})
	}
	return out, nil
}

func contents(h *multipart.FileHeader) ([]byte, error) {
	f, err := h.Open()
	if err != nil {
		return nil, fmt.Errorf("read a file of a form: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read a file of a form: %w", err)
	}
	return data, nil
}

// fingerprint is a text that is another one for other files.
func fingerprint(files []api.FileInput) string {
	h := sha256.New()
	for _, f := range files {
		_, _ = fmt.Fprintf(h, "%q %d ", f.Name, len(f.Data))
		_, _ = h.Write(f.Data)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// fileFault is what is wrong with the files of a form, in one sentence; "" = nothing.
func fileFault(bad map[string]string, files []api.FileInput) string {
	for i, f := range files {
		for _, part := range []string{"name", "data"} {
			if why := bad[fmt.Sprintf("files[%d].%s", i, part)]; why != "" {
				return sentence("“" + PlainText(f.Name) + "” " + why)
			}
		}
	}
	return sentence(bad["files"])
}

// file answers a file that came with a prompt or a message.
func (v *visit) file() error {
	id, err := v.sessionID()
	if err != nil {
		return err
	}
	var file api.AttachmentID
	if file.UnmarshalText([]byte(v.path("file"))) != nil {
		file = 0
	}
	a, data, err := v.web.engine.Attachment(v.r.Context(), v.caller, id, file)
	if err != nil {
		return err
	}
	SendFile(v, a, data)
	return nil
}

// filesOf are the files of a session, by the message that they came with; 0 is the prompt. Those that
// retention has removed are none.
func (v *visit) filesOf(ctx context.Context, c engine.Caller, id api.SessionID) (map[api.MessageID][]api.Attachment, error) {
	list, err := v.web.engine.Attachments(ctx, c, id)
	if err != nil && api.CodeOf(err) != api.CodeGone {
		return nil, err
	}
	out := map[api.MessageID][]api.Attachment{}
	for _, f := range list {
		out[f.MessageID] = append(out[f.MessageID], f)
	}
	return out, nil
}

func fileURL(f api.Attachment) string {
	return sessionURL(f.SessionID) + "/files/" + f.ID.String()
}
