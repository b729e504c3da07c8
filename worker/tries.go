package worker

import (
	"strconv"
	"time"

	"stint/api"
)

const tryFirst = 10 * time.Second

// tryDelay is the pause after the given try (counted from 1) of a session:
// min(10 s · 2^(try-1), most), without overflow for any try. contract 10.6
func tryDelay(try int, most time.Duration) time.Duration {
	if try > 30 { // 10 s doubled 30 times is over 300 years
		return most
	}
	return min(tryFirst<<max(try-1, 0), most)
}

// firstTry is the number of the try that a claim begins with: those that failed under earlier
// claims of the session count, so that each claim doesn't start counting again (contract
// 10.6). The last one may be repeated.
func (s *session) firstTry(more int) int {
	failed := s.claim.Session.Tries
	if text, err := s.p.state.fact(triesName(s.addr.Session)); err != nil {
		s.log.Error("the count of tries can't be read", "error", err)
	} else if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		failed = max(failed, n) // the coordinator may not have learned of it
	}
	return int(min(failed, int64(more))) + 1
}

// countTry notes that a try failed and will be followed by another.
func (s *session) countTry(try int) {
	s.report(entryPatch, api.SessionPatch{Tries: int64(try)})
	if err := s.p.state.setFact(triesName(s.addr.Session), strconv.Itoa(try)); err != nil {
		s.log.Error("a failed try can't be counted here", "error", err)
	}
}

func triesName(id api.SessionID) string { return "tries of " + id.String() }
