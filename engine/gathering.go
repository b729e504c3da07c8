package engine

import (
	"stint/api"
	"stint/db"
)

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
	rest func() int64 // where to look on when read gave fewer rows than asked for, 0 = nowhere; nil = never
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
				out.NextCursor = db.Cursor(before)
				return out, nil
			}
			if before = g.key(r); ok {
				out.Items = append(out.Items, item)
			}
		}
		if int64(len(rows)) < step {
			if g.rest != nil && g.rest() != 0 {
				out.NextCursor = db.Cursor(g.rest())
			}
			return out, nil
		}
	}
}
