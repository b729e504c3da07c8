package engine_test

import (
	"testing"

	"pgregory.net/rapid"

	"stint/engine/enginetest"
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
	breakNoPromise(t, newPlay)
}

// The same, of people and agents that share tasks: at most one holds a task, whose it is lasts
// while leases lapse, and no rule changes what a person has set.
func TestProperty_NoOrderOfVerbsBreaksAPromiseOfTasks(t *testing.T) {
	t.Parallel()
	breakNoPromise(t, newTaskPlay)
}

func breakNoPromise(t *testing.T, begin func(enginetest.TB, dice) *play) {
	rapid.Check(t, func(t *rapid.T) {
		p := begin(t, rapidDice{t})
		bag := p.bag()
		t.Repeat(map[string]func(*rapid.T){
			"":     func(*rapid.T) { p.check() },
			"step": func(*rapid.T) { p.step(bag) },
		})
	})
}
