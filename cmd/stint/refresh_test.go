package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"stint/api"
)

// answers is a server that gives one answer after the other, the last one for ever.
type answers struct {
	says  []string // a status and a body; "" = the connection breaks
	asked int
}

// RoundTrip is part of http.RoundTripper.
func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	said := a.says[min(a.asked, len(a.says)-1)]
	a.asked++
	if said == "" {
		return nil, errors.New("connection reset by peer")
	}
	status, body, _ := strings.Cut(said, " ")
	code, err := strconv.Atoi(status)
	return &http.Response{
		Request: r, Status: status, StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)),
	}, err
}

const (
	started = `200 {"device_code":"d","user_code":"ABCD-EFGH","verification_uri":"https://x.test/device","expires_in":600,"interval":5}`
	pending = `400 {"error":"authorization_pending"}`
	given   = `200 {"access_token":"at","token_type":"Bearer","refresh_token":"rt","expires_in":900}`
)

// A lost answer, a proxy without its server and a server that is too busy don't end a sign-in
// by code; a refusal by the server does, and so does the end of the code.
func TestLoginByCode_OutlivesWhatIsNoAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		says []string
		want error // nil = signed in
	}{
		"a lost answer":           {[]string{started, "", pending, given}, nil},
		"five in a row":           {[]string{started, pending, "", "", "", "", "", given}, nil},
		"a server being upgraded": {[]string{started, `503 {"error":"temporarily_unavailable"}`, given}, nil},
		"a proxy":                 {[]string{started, "502 <html>Bad Gateway</html>", pending, "504 ", given}, nil},
		"a no":                    {[]string{started, "", `400 {"error":"access_denied"}`}, errLoginDenied},
		"a code that ended":       {[]string{started, `400 {"error":"expired_token"}`}, context.DeadlineExceeded},
		"nobody for ten minutes":  {[]string{started, ""}, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &answers{says: test.says}
				var told bytes.Buffer
				c := &cli{err: &told, now: time.Now}
				ctx, cancel := context.WithTimeout(t.Context(), loginPatience)
				defer cancel()
				ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: server})
				token, err := c.loginByCode(ctx, api.AuthServer{TokenEndpoint: "https://x.test/token", DeviceEndpoint: "https://x.test/device"})
				if test.want != nil {
					if !errors.Is(err, test.want) {
						t.Errorf("answered %v", err)
					}
					return
				}
				if err != nil || token.AccessToken != "at" {
					t.Errorf("after %d requests: %v", server.asked, err)
				}
				if n := strings.Count(told.String(), "does not answer"); n > 2 {
					t.Errorf("a person gets %d times that the server doesn't answer", n)
				}
			})
		})
	}
}

// A refresh whose answer was lost is repeated while the server still gives the same answer,
// and a refused one isn't.
func TestPatiently_TriesARefreshAgainAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		says []string
		good bool
		most time.Duration
	}{
		"a lost answer": {[]string{"", given}, true, 600 * time.Millisecond},
		"a refusal":     {[]string{`400 {"error":"invalid_grant"}`}, false, 0},
		"an outage":     {[]string{""}, false, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &answers{says: test.says}
				ctx := context.WithValue(t.Context(), oauth2.HTTPClient, &http.Client{Transport: server})
				config := oauthConfig(api.AuthServer{TokenEndpoint: "https://x.test/token"})
				begun := time.Now()
				token, err := patiently(ctx, refreshPatience, func() {}, func() (*oauth2.Token, error) {
					return config.TokenSource(ctx, &oauth2.Token{RefreshToken: "rt"}).Token()
				})
				if (err == nil) != test.good || test.good && token.RefreshToken != "rt" {
					t.Errorf("answered %v, %v", token, err)
				}
				if took := time.Since(begun); took > test.most {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}
