package server

import (
	"crypto/tls"
	"time"

	"stint/api"
)

// Holding counts the requests and streams that are being held.
func (s *Server) Holding() int {
	n := 0
	for _, h := range s.held {
		h.mu.Lock()
		n += int(h.all)
		h.mu.Unlock()
	}
	return n
}

// WakeNow shortens how long a shutdown waits for bodies and requests in progress.
func (s *Server) WakeNow(bodyLeft, drain time.Duration) { s.bodyLeft, s.drain = bodyLeft, drain }

// ForgetRights clears what is remembered about tokens.
func (s *Server) ForgetRights() {
	s.rights.mu.Lock()
	defer s.rights.mu.Unlock()
	clear(s.rights.grants)
}

// RightsAsked counts how often a token's owner was looked up, and how often a request waited
// for a look-up already in progress.
func (s *Server) RightsAsked() (asked, waited int) {
	s.rights.mu.Lock()
	defer s.rights.mu.Unlock()
	return s.rights.asked, s.rights.waited
}

// Expiring says that a certificate ends soon.
func (s *Server) Expiring(state *tls.ConnectionState) []api.Check { return s.expiring(state) }
