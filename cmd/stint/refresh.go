package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"golang.org/x/oauth2"
)

// refreshPatience is how long a refresh whose answer was lost is repeated. The server gives
// the same answer once more within ten seconds, and treats a later try as a thief's.
const refreshPatience = 5 * time.Second

// patiently asks the server for tokens until it answers: a lost answer, or a proxy whose
// server is being restarted, is not a refusal. It gives up after patience. waiting is called
// once, when the first try failed that way.
func patiently(ctx context.Context, patience time.Duration, waiting func(), ask func() (*oauth2.Token, error)) (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for pause := 500 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		token, err := ask()
		if err == nil || !unanswered(err) {
			return token, err
		}
		waiting()
		waiting = func() {}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

// unanswered reports whether a failed request for tokens may succeed if it is repeated
// unchanged: nothing answered, or something that can't answer now.
func unanswered(err error) bool {
	var said *oauth2.RetrieveError
	if !errors.As(err, &said) || said.Response == nil {
		return !errors.As(err, &said)
	}
	return said.Response.StatusCode >= http.StatusInternalServerError || said.Response.StatusCode == http.StatusTooManyRequests
}

// waits tells a person that the server isn't answering now.
func (c *cli) waits() { c.hint("The server does not answer; waiting for it.") }
