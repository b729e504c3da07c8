package web

import (
	"mime"
	"net/http"
	"strconv"

	"stint/api"
)

// FilePolicy is the policy of a file that somebody gave: it may load and run nothing, whatever it
// holds, and has no origin.
const FilePolicy = "default-src 'none'; sandbox; frame-ancestors 'none'"

// SendFile answers the bytes of a file that somebody gave. Images that can't hold scripts are shown;
// everything else is bytes to be saved, whatever it calls itself.
func SendFile(w http.ResponseWriter, file api.Attachment, data []byte) {
	kind, how := "application/octet-stream", "attachment"
	if file.Image() {
		kind, how = file.Type, "inline"
	}
	disposition := mime.FormatMediaType(how, map[string]string{"filename": file.Name})
	if disposition == "" { // a name that no header can hold
		disposition = how
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", disposition)
	h.Set("Content-Length", strconv.Itoa(len(data)))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", FilePolicy)
	_, _ = w.Write(data) // a reader who went away isn't our failure
}
