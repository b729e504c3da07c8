package engine

import (
	"strconv"

	"stint/api"
)

const (
	defaultPage = 50
	maxPage     = 200
)

// pageOf reads a page request of a newest-first list: how many rows, and before
// which key. A cursor is the key of the last row shown, in base 36.
func pageOf(p api.Page, start int64) (n, before int64, err error) {
	n = int64(p.Limit)
	if n == 0 {
		n = defaultPage
	}
	if n < 1 || n > maxPage {
		return 0, 0, &api.Error{
			Code: api.CodeInvalid, Detail: "The limit is out of range.",
			Fields: []api.FieldError{{Field: "limit", Detail: "must be 1 to 200"}},
		}
	}
	if p.Cursor == "" {
		return n, start, nil
	}
	before, err = strconv.ParseInt(p.Cursor, 36, 64)
	if err != nil || before <= 0 {
		return 0, 0, &api.Error{
			Code: api.CodeInvalid, Detail: "The cursor is not one that a list gave out.",
			Fields: []api.FieldError{{Field: "cursor", Detail: "take it unchanged from nextCursor of the page before, or leave it out"}},
		}
	}
	return n, before, nil
}

// pageTexts bounds the texts of a page of a list; one item may hold more.
const pageTexts = 4 << 20 // bytes

// gathering makes a page of a newest-first list whose rows it reads a few at a
// time: of those that take gives, at most n, and fewer when their texts pass
// pageTexts. So what is left out costs no page, and hardly more is read than is shown.
type gathering[R, T any] struct {
	read func(before, n int64) ([]R, error)
	key  func(R) int64
	take func(R) (item T, ok bool, err error)
	size func(*T) int // bytes of its texts
}

func (g gathering[R, T]) page(n, before int64) (api.List[T], error) {
	out := api.List[T]{Items: []T{}}
	size, read := 0, 0
	for step := int64(firstRead / 4); ; step = 1 + int64((pageTexts-size)*read/max(size, 1)) {
		step = min(max(step, 1), n+1-int64(len(out.Items)))
		rows, err := g.read(before, step)
		if err != nil {
			return out, err
		}
		for _, r := range rows {
			item, ok, err := g.take(r)
			if err != nil {
				return out, err
			}
			if read++; ok {
				size += g.size(&item)
			}
			if ok && (int64(len(out.Items)) == n || (size > pageTexts && len(out.Items) > 0)) {
				out.NextCursor = strconv.FormatInt(before, 36)
				return out, nil
			}
			if before = g.key(r); ok {
				out.Items = append(out.Items, item)
			}
		}
		if int64(len(rows)) < step {
			return out, nil
		}
	}
}

// listOf makes a page of rows of which one more than n was asked for.
func listOf[R, T any](rows []R, n int64, to func(R) T, key func(R) int64) api.List[T] {
	out := api.List[T]{Items: make([]T, 0, min(int64(len(rows)), n))}
	for i, r := range rows {
		if int64(i) == n {
			out.NextCursor = strconv.FormatInt(key(rows[i-1]), 36)
			break
		}
		out.Items = append(out.Items, to(r))
	}
	return out
}
