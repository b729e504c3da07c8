package api

import "strings"

// Listed writes words one after the other: a, b, c.
func Listed[W ~string](words []W) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}

// OrList writes words, of which there is at least one, as a choice: a, b or c.
func OrList[W ~string](words []W) string {
	last := len(words) - 1
	if last == 0 {
		return string(words[0])
	}
	return Listed(words[:last]) + " or " + string(words[last])
}
