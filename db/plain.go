package db

import (
	"regexp"
	"strconv"
)

// parameters finds a statement's parameters, and what a ? in it may be besides.
var parameters = regexp.MustCompile(`'[^']*'|--[^\n]*|\?\d*`)

// plain writes numbered parameters (?1, ?2, as sqlc does) as bare ones where
// that means the same: when they stand in order, each once. For a numbered one
// the driver asks for the name and reads the number out of it, at each use.
func plain(query string) string {
	n, inOrder := 0, true
	bare := parameters.ReplaceAllStringFunc(query, func(part string) string {
		if part[0] != '?' {
			return part
		}
		n++
		inOrder = inOrder && part == "?"+strconv.Itoa(n)
		return "?"
	})
	if !inOrder {
		return query
	}
	return bare
}
