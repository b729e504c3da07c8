package api

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// MaxExpect is the longest text of a [Run.Expect], in bytes.
const MaxExpect = 1000

// Expectation is what must come of a run, beside that it ends well (contract 15.4).
type Expectation struct {
	Changes bool           // files or commits in its repository
	Output  *regexp.Regexp // what its result must match; nil = anything
}

// Any reports whether anything is expected.
func (e Expectation) Any() bool { return e.Changes || e.Output != nil }

const expectOutput = "output:"

// ParseExpect reads "changes", "output:" with a pattern of RE2 that the result must match, or
// "" for nothing.
func ParseExpect(text string) (Expectation, error) {
	pattern, output := strings.CutPrefix(text, expectOutput)
	switch {
	case text == "":
		return Expectation{}, nil
	case text == "changes":
		return Expectation{Changes: true}, nil
	case len(text) > MaxExpect:
		return Expectation{}, fmt.Errorf("has %d bytes; at most %d fit", len(text), MaxExpect)
	case !output:
		return Expectation{}, errors.New("must be changes, output:PATTERN, or empty")
	case pattern == "":
		return Expectation{}, errors.New("has no pattern behind output:, such as output:^done")
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return Expectation{}, fmt.Errorf("holds a pattern that can't be read (RE2): %w", err)
	}
	return Expectation{Output: re}, nil
}
