package proc

import "time"

// Stages are the graces of an ending: after an interrupt, after a TERM, and the time that KILL
// is given to take effect. contract 10.7
//
// The zero value stands for DefaultStages. A zero Interrupt or Term moves on to the next
// signal at once; a zero Kill means that of DefaultStages.
type Stages struct {
	Interrupt time.Duration
	Term      time.Duration
	Kill      time.Duration
}

// DefaultStages returns the staging of contract 10.7.
func DefaultStages() Stages {
	return Stages{Interrupt: 10 * time.Second, Term: 10 * time.Second, Kill: 2 * time.Second}
}

// Total is the staging time: from the first signal until nothing is left. An ending
// by deadline begins this long before the deadline.
func (s Stages) Total() time.Duration {
	s = s.orDefault()
	return s.Interrupt + s.Term + s.Kill
}

func (s Stages) orDefault() Stages {
	if s == (Stages{}) {
		return DefaultStages()
	}
	if s.Kill <= 0 {
		s.Kill = DefaultStages().Kill
	}
	return s
}
