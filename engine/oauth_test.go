package engine_test

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

func me(w *enginetest.World) engine.Identity {
	return engine.Identity{UserID: w.Owner.UserID, Name: w.Owner.Name}
}

// signedInProgram signs a program in for the owner.
func signedInProgram(t *testing.T, w *enginetest.World) engine.Tokens {
	t.Helper()
	sum := sha256.Sum256([]byte("verifier"))
	code, err := w.GiveCode(t.Context(), me(w), engine.Grant{Client: engine.CLI, Redirect: "http://127.0.0.1/callback", Challenge: base64.RawURLEncoding.EncodeToString(sum[:])})
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.TradeCode(t.Context(), engine.Presented{Client: engine.CLI}, code, "http://127.0.0.1/callback", "verifier")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Ten thousand guesses at what a device shows, ten a second: all but five a minute
// and fifty an hour are turned away unseen, and none hits.
func TestOAuth_GuessedUserCodesAreTurnedAway(t *testing.T) {
	w := enginetest.New(t)
	if _, err := w.StartDevice(t.Context(), engine.Presented{Client: engine.CLI}); err != nil {
		t.Fatal(err)
	}
	looked, turned := 0, 0
	for i := range 10_000 {
		err := w.Allow(t.Context(), me(w), fmt.Sprintf("%08d", i), engine.From{Address: fmt.Sprintf("203.0.%d.%d", i/200, i%200)})
		switch api.CodeOf(err) {
		case api.CodeInvalid:
			looked++
		case api.CodeTooMany:
			turned++
		default:
			t.Fatalf("guess %d answered %v", i, err)
		}
		w.Clock.Step(100 * time.Millisecond)
	}
	if looked != 50 || turned != 9950 {
		t.Errorf("%d guesses were looked at and %d turned away", looked, turned)
	}
}

// What a store keeps of a traded token doesn't make the next one: without the old
// token itself nobody gets further.
func TestOAuth_WhatIsKeptMakesNoToken(t *testing.T) {
	w := enginetest.New(t)
	first := signedInProgram(t, w)
	second, err := w.Refresh(t.Context(), engine.Presented{Client: engine.CLI}, first.Refresh)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{first.Access, first.Refresh, second.Access, second.Refresh} {
		if len(token) < 50 {
			t.Errorf("%q is too short to be a secret", token)
		}
	}
	image := string(w.Image())
	for _, token := range []string{first.Access, first.Refresh, second.Access, second.Refresh} {
		if strings.Contains(image, token) || strings.Contains(image, token[10:40]) {
			t.Errorf("%.12s… is kept", token)
		}
	}
	w.Restart()
	var refused *engine.OAuthError
	if _, err := w.Refresh(t.Context(), engine.Presented{Client: engine.CLI}, second.Access); !errors.As(err, &refused) {
		t.Errorf("an access token was taken for a refresh token: %v", err)
	}
}

func TestClient_RedirectsThatAreItsOwn(t *testing.T) {
	c, ok, err := enginetest.New(t).ClientOf(t.Context(), engine.CLI)
	if err != nil || !ok {
		t.Fatal("the command line is not registered", err)
	}
	for uri, want := range map[string]bool{
		"http://127.0.0.1/callback":            true,
		"http://127.0.0.1:1/callback":          true,
		"http://127.0.0.1:65535/callback":      true,
		"http://[::1]:50000/callback":          true,
		"http://[::1]/callback":                true,
		"http://127.0.0.1:/callback":           false,
		"http://127.0.0.1:123456/callback":     false,
		"http://127.0.0.1:+1/callback":         false,
		"http://127.0.0.1:١/callback":          false,
		"http://127.0.0.1:1/callback/":         false,
		"http://127.0.0.1:1//callback":         false,
		"http://127.0.0.1:1/CALLBACK":          false,
		"HTTP://127.0.0.1:1/callback":          false,
		"http://127.0.0.2:1/callback":          false,
		"http://127.0.0.1:1/callback\n":        false,
		"http://127.0.0.1:1@evil/callback":     false,
		"http://user@127.0.0.1:1/callback":     false,
		"http://localhost:1/callback":          false,
		"http://2130706433:1/callback":         false,
		"http://[::ffff:127.0.0.1]:1/callback": false,
		"":                                     false,
	} {
		if got := c.Redirect(uri); got != want {
			t.Errorf("%q: %t", uri, got)
		}
	}
}
