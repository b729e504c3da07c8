package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
)

// leastPacked is the size in bytes below which compression saves no packet.
const leastPacked = 1400

// takesGzip reports whether the reader's program said that it takes gzip (RFC 9110, 12.5.3).
func takesGzip(r *http.Request) bool {
	for _, offer := range strings.Split(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, weight, weighed := strings.Cut(strings.TrimSpace(offer), ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		if !weighed {
			return true
		}
		q, err := strconv.ParseFloat(strings.TrimPrefix(strings.ReplaceAll(weight, " ", ""), "q="), 64)
		return err == nil && q > 0
	}
	return false
}

// mayPack reports whether a page that only its reader may see can be compressed for a request.
// The length of a compressed page tells what in it repeats, so another site that has a browser
// ask for pages with words of its choice, and sees how long the answers are, could guess what is
// on them (BREACH). It is compressed only where the browser says that no other site asked:
// Sec-Fetch-Site can't be set by a page.
func mayPack(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return takesGzip(r)
	}
	return false
}

// packed is a body compressed; nil where that makes it no smaller.
func packed(body []byte, level int) []byte {
	if len(body) < leastPacked {
		return nil
	}
	var buf bytes.Buffer
	w, err := gzip.NewWriterLevel(&buf, level)
	if err != nil {
		return nil // the level is a constant of the package
	}
	if _, err := w.Write(body); err != nil {
		return nil
	}
	if err := w.Close(); err != nil || buf.Len() >= len(body) {
		return nil
	}
	return buf.Bytes()
}
