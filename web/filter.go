package web

import (
	"net/url"
	"slices"
	"strings"
)

// filterValues is a filter as addresses have it, from names and values in turn; empty parts are
// left out.
func filterValues(pairs ...string) url.Values {
	out := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out.Set(pairs[i], pairs[i+1])
		}
	}
	return out
}

// filterURL is the address of a list with a filter, and with more names and values in turn.
func filterURL(path string, filter url.Values, more []string) string {
	for i := 0; i+1 < len(more); i += 2 {
		filter.Set(more[i], more[i+1])
	}
	if len(filter) == 0 {
		return path
	}
	return path + "?" + filter.Encode()
}

// commaWords writes words as one part of a filter, and knownWords reads those that are among all
// that there are.
func commaWords[S ~string](words []S) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return strings.Join(out, ",")
}

func knownWords[S ~string](text string, all []S) []S {
	var out []S
	for _, word := range strings.Split(text, ",") {
		if s := S(word); slices.Contains(all, s) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
