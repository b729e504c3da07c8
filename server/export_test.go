package server

// Holding counts the requests and streams that are being held.
func (s *Server) Holding() int {
	s.held.mu.Lock()
	defer s.held.mu.Unlock()
	n := 0
	for _, held := range s.held.by {
		n += held
	}
	return n
}
