package account_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"stint/account"
	"stint/api"
	"stint/engine/enginetest"
)

// Ten thousand guesses at what a device shows, ten a second: all but five a minute
// and fifty an hour are turned away unseen, and none hits.
func TestOAuth_GuessedUserCodesAreTurnedAway(t *testing.T) {
	w := enginetest.New(t)
	if _, err := w.StartDevice(t.Context(), account.Presented{Client: account.CLI}); err != nil {
		t.Fatal(err)
	}
	looked, turned := 0, 0
	for i := range 10_000 {
		err := w.Allow(t.Context(), w.Me(), fmt.Sprintf("%08d", i), account.From{Address: fmt.Sprintf("203.0.%d.%d", i/200, i%200)})
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
func TestOAuth_WhatIsStoredMakesNoToken(t *testing.T) {
	w := enginetest.New(t)
	first := w.Program()
	second, err := w.Refresh(t.Context(), account.Presented{Client: account.CLI}, first.Refresh)
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
	var refused *account.OAuthError
	if _, err := w.Refresh(t.Context(), account.Presented{Client: account.CLI}, second.Access); !errors.As(err, &refused) {
		t.Errorf("an access token was taken for a refresh token: %v", err)
	}
}

// A refresh token whose answer was lost is answered with the same tokens again, at
// once and no later, and not once those were used: then two have it.
func TestOAuth_ARefreshTokenEndsWhenItsSuccessorIsUsed(t *testing.T) {
	w := enginetest.New(t)
	cli := account.Presented{Client: account.CLI}
	ended := func(name, refresh, access string) {
		t.Helper()
		var refused *account.OAuthError
		if _, err := w.Refresh(t.Context(), cli, refresh); !errors.As(err, &refused) || refused.Code != "invalid_grant" {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := w.Authenticate(t.Context(), access); api.CodeOf(err) != api.CodeUnauthenticated {
			t.Errorf("%s: the sign-in goes on: %v", name, err)
		}
	}
	trade := func(refresh string) account.Tokens {
		t.Helper()
		out, err := w.Refresh(t.Context(), cli, refresh)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := w.Program()
	second := trade(first.Refresh)
	w.Clock.Step(9 * time.Second)
	if again := trade(first.Refresh); again.Refresh != second.Refresh || again.Access != second.Access {
		t.Error("the answer that was lost isn't given again")
	}
	third := trade(second.Refresh)
	ended("used one second after its successor", first.Refresh, third.Access)

	late := w.Program()
	next := trade(late.Refresh)
	w.Clock.Step(11 * time.Second)
	ended("used too late", late.Refresh, next.Access)
}

func TestClient_RedirectsThatAreItsOwn(t *testing.T) {
	c, ok, err := enginetest.New(t).ClientOf(t.Context(), account.CLI)
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
