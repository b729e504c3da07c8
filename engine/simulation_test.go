package engine_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"stint/engine/enginetest"
)

var soak = flag.Int("soak", 1, "how many times more the long tests do: seeds, rounds and histories")

// seededDice draws from a seed.
type seededDice struct{ *rand.Rand }

func (d seededDice) draw(_ string, n int) int { return d.IntN(n) }

// failedSeeds have found something once and are played for ever.
var failedSeeds = []uint64{}

// A swarm of seeded plays, each with its own mixture of verbs, checked now and then; at the
// end of each the faults stop, and everything must come to its end.
func TestSimulation_NoLifeBreaksAPromiseOrGetsStuck(t *testing.T) {
	t.Parallel()
	manyLives(t, newPlay)
}

func TestSimulation_NoLifeWithTasksBreaksAPromiseOrGetsStuck(t *testing.T) {
	t.Parallel()
	manyLives(t, newTaskPlay)
}

func manyLives(t *testing.T, begin func(enginetest.TB, dice) *play) {
	t.Helper()
	seeds := slices.Clone(failedSeeds)
	for i := range fewer(10) * *soak {
		seeds = append(seeds, uint64(i+1))
	}
	total := map[string]int{}
	steps, stale := 0, 0
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			p := simulate(t, begin, seed, 300)
			steps, stale = steps+p.steps, stale+p.stale
			for k, n := range p.calls {
				total[k] += n
			}
		})
	}
	t.Logf("%d lives, %d steps, %d writes under dead claims", len(seeds), steps, stale)
	for _, k := range slices.Sorted(maps.Keys(total)) {
		t.Logf("%7d %s", total[k], k)
	}
}

// simulate plays one seed: the same seed is the same play.
func simulate(t enginetest.TB, begin func(enginetest.TB, dice) *play, seed uint64, steps int) *play {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	p := begin(t, seededDice{r})
	// The swarm: each seed leaves some verbs out.
	bag := p.bag()
	for range r.IntN(4) {
		out := bag[r.IntN(len(bag))].name
		bag = slices.DeleteFunc(bag, func(v verb) bool { return v.name == out })
	}
	for i := range steps {
		p.step(bag)
		if i%10 == 9 {
			p.check()
		}
	}
	p.check()
	p.rest()
	return p
}
