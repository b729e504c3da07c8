package engine

import (
	"fmt"
	"time"

	"stint/api"
	"stint/db"
)

const (
	// maxReleases is how often in a row the workers of a session may give it back. A session
	// that no worker can keep would be passed round for ever. contract 10.11
	maxReleases = 20

	freeReleases  = 3 // … and how often without a pause: restarting a worker costs no time
	firstPause    = time.Second
	longestPause  = 5 * time.Minute
	codeGivenBack = "released_repeatedly"
)

// pauseAfter is how long a session rests that was given back a number of times in a row.
func pauseAfter(releases int64) time.Duration {
	if releases <= freeReleases {
		return 0
	}
	return min(firstPause<<min(releases-freeReleases-1, 20), longestPause)
}

// givenBack counts a release: from the fourth in a row on the session rests before it is
// claimed again, ever longer, and finally it ends in error. A finished turn, a person's retry
// and an answer reset the count. A release that rests at least as long as the longest of those
// pauses, until a time that a usage limit named, isn't counted.
func (e *Engine) givenBack(tx *db.Tx, h held, next *sessionRow, reason string, data api.EventData) error {
	next.Releases++
	data["releases"] = next.Releases
	if next.Releases < maxReleases {
		if pause := pauseAfter(next.Releases); pause > 0 {
			next.ReclaimAt = db.Micros(tx.Now) + db.Span(pause)
		}
		return nil
	}
	next.Status, next.ErrorCode = api.Failed, codeGivenBack
	next.ErrorMessage = fmt.Sprintf("Its workers gave it back %d times in a row.", next.Releases)
	if reason != "" {
		next.ErrorMessage += " The last reason was: " + api.Excerpt(reason, 500) + "."
	}
	data["code"] = next.ErrorCode
	return e.closePrompt(tx, next, h.actor(), "cancelled")
}
