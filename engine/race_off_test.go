//go:build !race

package engine_test

// raced says that the race detector is on, which makes the long plays slow: they are short
// then, and whole in a run without it.
const raced = false
