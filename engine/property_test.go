package engine_test

import (
	"testing"

	"pgregory.net/rapid"
)

// rapidDice draws from rapid, which can shrink what it drew.
type rapidDice struct{ t *rapid.T }

func (d rapidDice) draw(label string, n int) int {
	return rapid.IntRange(0, n-1).Draw(d.t, label)
}

// Whatever people, workers and clocks do, in whatever order: no promise is broken, and every
// waiting session names the true reason.
func TestProperty_NoOrderOfVerbsBreaksAPromise(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := newPlay(t, rapidDice{t})
		bag := p.bag()
		t.Repeat(map[string]func(*rapid.T){
			"":     func(*rapid.T) { p.check() },
			"step": func(*rapid.T) { p.step(bag) },
		})
	})
}
