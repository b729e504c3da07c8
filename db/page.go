package db

import (
	"hash/crc32"
	"strconv"
	"strings"

	"stint/api"
)

const (
	defaultPage = 50

	// MaxPage is how many rows a page of a list has at most.
	MaxPage = 200
)

// Cursor is that of a list that goes on before a key: the key in base 36, and
// by how much it fits a check sum, so that a text that no list gave out is refused
// and isn't a place that happens to be nowhere.
func Cursor(before int64) string {
	text := strconv.FormatInt(before, 36)
	return text + "." + cursorSum(text)
}

func cursorSum(text string) string {
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(text))%(36*36*36)), 36)
}

// placeOf is the key that a cursor stands for.
func placeOf(cursor string) (before int64, ok bool) {
	text, sum, _ := strings.Cut(cursor, ".")
	before, err := strconv.ParseInt(text, 36, 64)
	return before, err == nil && before > 0 && Cursor(before) == cursor && sum != ""
}

// PageOf reads a page request of a newest-first list: how many rows, and before
// which key; start is where the first page begins. Errors: invalid.
func PageOf(p api.Page, start int64) (n, before int64, err error) {
	n = int64(p.Limit)
	if n == 0 {
		n = defaultPage
	}
	if n < 1 || n > MaxPage {
		return 0, 0, &api.Error{
			Code: api.CodeInvalid, Detail: "The limit is out of range.",
			Fields: []api.FieldError{{Field: "limit", Detail: "must be 1 to 200"}},
		}
	}
	if p.Cursor == "" {
		return n, start, nil
	}
	before, ok := placeOf(p.Cursor)
	if !ok {
		return 0, 0, &api.Error{
			Code: api.CodeInvalid, Detail: "The cursor is not one that a list gave out.",
			Fields: []api.FieldError{{Field: "cursor", Detail: "take it unchanged from nextCursor of the page before, or leave it out"}},
		}
	}
	return n, before, nil
}

// ListOf makes a page of rows of which one more than n was asked for; key is where
// the next page goes on.
func ListOf[R, T any](rows []R, n int64, to func(R) T, key func(R) int64) api.List[T] {
	out := api.List[T]{Items: make([]T, 0, min(int64(len(rows)), n))}
	for i, r := range rows {
		if int64(i) == n {
			out.NextCursor = Cursor(key(rows[i-1]))
			break
		}
		out.Items = append(out.Items, to(r))
	}
	return out
}
