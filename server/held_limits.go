package server

import (
	"fmt"
	"net/netip"
	"sync"

	"stint/api"
)

// Limit is how many requests may be held at a time.
type Limit struct {
	Person  int64 // by one user
	Address int64 // from one address; of an IPv6 one, from its network of 64 bits
	All     int64
}

// Limits bound what is held. Streams, which browsers hold, and waits, which workers hold, are
// counted separately.
type Limits struct{ Streams, Waits Limit }

// DefaultLimits are enough for a person with dozens of tabs and a fleet of workers, and bound
// what the server spends on clients that ask for more.
func DefaultLimits() Limits {
	return Limits{
		Streams: Limit{Person: 128, Address: 512, All: 2048},
		Waits:   Limit{Person: 2048, Address: 4096, All: 8192},
	}
}

// holds counts the held requests of one kind.
type holds struct {
	limit Limit
	words string // what they are called

	mu      sync.Mutex // guards what follows
	persons map[api.UserID]int64
	nets    map[netip.Prefix]int64
	all     int64
}

func newHolds(limit Limit, words string) *holds {
	return &holds{limit: limit, words: words, persons: map[api.UserID]int64{}, nets: map[netip.Prefix]int64{}}
}

// take counts one more, or refuses it. Errors: too_many_requests.
func (h *holds) take(user api.UserID, from netip.Prefix) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var whose string
	switch {
	case h.persons[user] >= h.limit.Person:
		whose = fmt.Sprintf("%d of your %s are", h.limit.Person, h.words)
	case h.nets[from] >= h.limit.Address:
		whose = fmt.Sprintf("%d %s from your address are", h.limit.Address, h.words)
	case h.all >= h.limit.All:
		whose = fmt.Sprintf("%d %s are", h.limit.All, h.words)
	default:
		h.persons[user]++
		h.nets[from]++
		h.all++
		return nil
	}
	return &api.Error{
		Code: api.CodeTooMany, RetryIn: 5,
		Detail: whose + " open, as many as there may be at a time. Wait for some to end.",
	}
}

func (h *holds) give(user api.UserID, from netip.Prefix) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all--
	if h.persons[user]--; h.persons[user] == 0 {
		delete(h.persons, user)
	}
	if h.nets[from]--; h.nets[from] == 0 {
		delete(h.nets, from)
	}
}

// netOf is the part of a client's address that counts as one address: a client can choose any
// address in its IPv6 network.
func netOf(addr netip.Addr) netip.Prefix {
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // no address: those without one count together
	}
	return p
}
