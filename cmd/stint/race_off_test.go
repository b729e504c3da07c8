//go:build !race

package main

// raced says that the race detector is on, which takes memory itself.
const raced = false
