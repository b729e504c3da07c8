package server_test

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"stint/account"
	"stint/api"
	"stint/server"
	"stint/server/servertest"
)

// Each refresh token is good once. A second use within ten seconds counts as the same program
// that got no answer; later, as a thief or its victim.
func TestOAuth_RefreshTokensRotate(t *testing.T) {
	l := newLobby(t)
	first := l.signIn()
	_, _, second := l.refresh(first.RefreshToken)
	// The answer was lost: the same one is given once more.
	l.clock.step(9 * time.Second)
	if status, word, again := l.refresh(first.RefreshToken); status != 200 || again.RefreshToken != second.RefreshToken ||
		again.AccessToken != second.AccessToken || again.ExpiresIn >= second.ExpiresIn {
		t.Fatalf("the retry answered %d %s %+v", status, word, again)
	}
	// The new one still works, as does the earlier access token until its end.
	_, _, third := l.refresh(second.RefreshToken)
	for name, token := range map[string]string{"first": first.AccessToken, "second": second.AccessToken, "third": third.AccessToken} {
		if !l.works(token) {
			t.Errorf("the %s access token doesn't work", name)
		}
	}
	other := l.signIn() // of the same person: another family
	l.clock.step(2 * time.Second)
	if status, word, _ := l.refresh(first.RefreshToken); status != 400 || word != "invalid_grant" {
		t.Errorf("the second use answered %d %s", status, word)
	}
	for name, token := range map[string]string{"first": first.AccessToken, "second": second.AccessToken, "third": third.AccessToken} {
		if l.works(token) {
			t.Errorf("the %s access token still works", name)
		}
	}
	if status, _, _ := l.refresh(third.RefreshToken); status != 400 {
		t.Errorf("the family's newest token answered %d", status)
	}
	if !l.works(other.AccessToken) {
		t.Error("another sign-in ended with it")
	}
	told := servertest.Must[api.List[api.AuditEntry]](l.Server, 200, "GET", "audit?type=program_token_reused", nil)
	if len(told.Items) != 1 || told.Items[0].Data["why"] != "a refresh token was used twice" || told.Items[0].Data["program"] != account.CLI {
		t.Errorf("the audit says %+v", told.Items)
	}
	if a := l.Do("GET", "events?after=0&limit=200", nil); a.Status != 200 || strings.Contains(string(a.Body), "program_") {
		t.Errorf("the stream tells everybody of sign-ins: %d", a.Status)
	}
}

// However many requests use one token at once: they all get the same.
func TestOAuth_RefreshedManyTimesAtOnce(t *testing.T) {
	l := newLobby(t)
	first := l.signIn()
	var mu sync.Mutex
	seen := map[string]int{}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, word, got := l.refresh(first.RefreshToken)
			mu.Lock()
			defer mu.Unlock()
			seen[word+got.RefreshToken]++
		})
	}
	all.Wait()
	if len(seen) != 1 || seen[""] != 0 {
		t.Errorf("20 at once got %v", seen)
	}
}

func TestOAuth_TokensEnd(t *testing.T) {
	l := newLobby(t)
	token := l.signIn()
	l.clock.step(15*time.Minute + time.Second)
	servertest.Wait(t, "the access token ends", func() bool { return !l.works(token.AccessToken) })
	_, _, next := l.refresh(token.RefreshToken)
	if !l.works(next.AccessToken) {
		t.Fatal("refreshing after the end of the access token doesn't work")
	}
	for name, form := range map[string]url.Values{
		"an access token":  {"refresh_token": {next.AccessToken}},
		"a changed one":    {"refresh_token": {altered(next.RefreshToken, len(next.RefreshToken)-1)}},
		"another resource": {"refresh_token": {next.RefreshToken}, "resource": {"https://evil.test"}},
		"another client":   {"refresh_token": {next.RefreshToken}, "client_id": {"evil"}},
		"two":              {"refresh_token": {next.RefreshToken, "x"}},
	} {
		form.Set("grant_type", "refresh_token")
		if !form.Has("client_id") {
			form.Set("client_id", account.CLI)
		}
		if status, _, a := l.trade(form); status != 400 {
			t.Errorf("refreshing with %s answered %d %s", name, status, a.Body)
		}
	}
	// A refresh token isn't an access token.
	if l.works(next.RefreshToken) {
		t.Error("a refresh token signs in")
	}
	l.clock.step(30*24*time.Hour + time.Second)
	if status, word, _ := l.refresh(next.RefreshToken); status != 400 || word != "invalid_grant" {
		t.Errorf("after 30 days without use refreshing answered %d %s", status, word)
	}
}

// A token that was granted for another part of the server gives no access to the API.
func TestOAuth_TokensAreForTheirResourceAlone(t *testing.T) {
	l := newLobby(t)
	who, err := l.Accounts.Owner(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	verifier := oauth2.GenerateVerifier()
	code, err := l.Accounts.GiveCode(t.Context(), who, account.Grant{
		Client: account.CLI, Resource: "/elsewhere", Redirect: loopback, Challenge: oauth2.S256ChallengeFromVerifier(verifier),
	})
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"grant_type": {"authorization_code"}, "client_id": {account.CLI}, "redirect_uri": {loopback}, "code": {code}, "code_verifier": {verifier}}
	_, _, a := l.trade(form)
	token := decoded[api.OAuthTokens](t, a)
	if token.AccessToken == "" {
		t.Fatalf("no token: %s", a.Body)
	}
	for _, path := range []string{"/api/v1/whoami", "agents", "/", "/openapi.json"} {
		if a := l.As(token.AccessToken).Do("GET", path, nil); a.Status != 401 {
			t.Errorf("%s answered %d", path, a.Status)
		}
	}
	form = url.Values{"grant_type": {"refresh_token"}, "client_id": {account.CLI}, "refresh_token": {token.RefreshToken}, "resource": {l.URL}}
	if _, word, _ := l.trade(form); word != "invalid_target" {
		t.Errorf("refreshing it for the API answered %q", word)
	}
}

// The account lists what is signed in; ending it, and leaving, end its tokens.
func TestOAuth_PeopleEndWhatIsSignedIn(t *testing.T) {
	l := newLobby(t)
	token := l.signIn()
	list := servertest.Must[api.List[api.SignIn]](l.Server, 200, "GET", "/api/v1/account/sign-ins?limit=1", nil)
	if len(list.Items) != 1 || list.Items[0].Kind != "program" || list.NextCursor == "" {
		t.Fatalf("the list is %+v", list)
	}
	rest := servertest.Must[api.List[api.SignIn]](l.Server, 200, "GET", "/api/v1/account/sign-ins?cursor="+list.NextCursor, nil)
	if len(rest.Items) != 2 || rest.Items[0].Kind != "browser" || rest.Items[1].Kind != "token" {
		t.Fatalf("the rest is %+v", rest)
	}
	at := "/api/v1/account/sign-ins/" + list.Items[0].ID.String()
	l.As(l.AddUser("default", api.Admin)).Refused(404, api.CodeNotFound, "DELETE", at, nil)
	if !l.works(token.AccessToken) {
		t.Fatal("somebody else ended it")
	}
	servertest.Must[any](l.Server, 204, "DELETE", at, nil)
	if l.works(token.AccessToken) {
		t.Error("an ended program's token works")
	}
	l.Refused(404, api.CodeNotFound, "DELETE", at, nil)

	// Removing a member ends the programs with the person's last membership.
	member := l.As(l.AddUser("default", api.Member))
	me := servertest.Must[api.Whoami](member, 200, "GET", "/api/v1/whoami", nil)
	theirs := *l
	link, err := l.Accounts.NewLink(t.Context(), account.Identity{UserID: me.UserID})
	if err != nil {
		t.Fatal(err)
	}
	theirs.cookie = cookieIn(t, l.send("/signin", url.Values{"link": {link}}, servertest.With("Cookie", "")))
	token = theirs.signIn()
	if !l.works(token.AccessToken) {
		t.Fatal("a member's program doesn't work")
	}
	servertest.Must[api.MemberRemoved](l.Server, 200, "DELETE", "members/"+me.UserID.String(), nil)
	if status, _, _ := l.refresh(token.RefreshToken); l.works(token.AccessToken) || status != 400 {
		t.Errorf("the program of a removed member works: %t, refreshes: %d", l.works(token.AccessToken), status)
	}
}

func (l *lobby) ask(code string) (int, string, api.OAuthTokens) {
	l.tb.Helper()
	status, word, a := l.trade(url.Values{"grant_type": {api.GrantDevice}, "client_id": {account.CLI}, "device_code": {code}})
	return status, word, decoded[api.OAuthTokens](l.tb, a)
}

// A program without a browser shows a code; a person types it, sees who asks from where, and
// says yes.
func TestOAuth_ADeviceSignsIn(t *testing.T) {
	l := newLobby(t)
	p := l.program()
	given, err := p.DeviceAuth(l.ctx())
	if err != nil {
		t.Fatal(err)
	}
	if given.VerificationURI != server.ForBrowsers(l.URL)+"/device" || given.VerificationURIComplete != "" || given.Interval != 5 || len(given.UserCode) != 9 {
		t.Fatalf("the device got %+v", given)
	}
	// No link fills the code in, and a link's code does nothing.
	if a := l.look("/device?user_code=" + given.UserCode + "&code=" + given.UserCode); a.Status != 200 || strings.Contains(string(a.Body), given.UserCode) {
		t.Errorf("the page answered %d %s", a.Status, a.Body)
	}
	a := l.send("/device", url.Values{"user_code": {strings.ToLower(strings.ReplaceAll(given.UserCode, "-", " "))}})
	for _, words := range []string{"Stint on the command line", "Go-http-client", "127.0.0.1", "UTC", "Say no unless"} {
		if !strings.Contains(string(a.Body), words) {
			t.Errorf("the page doesn't say %q: %s", words, a.Body)
		}
	}
	if status, word, _ := l.ask(given.DeviceCode); status != 400 || word != "authorization_pending" {
		t.Errorf("before the answer: %d %s", status, word)
	}
	l.clock.step(5 * time.Second)
	yes := shown(a.Body)
	yes.Set("decision", "allow")
	if a := l.send("/device", yes); a.Status != 200 || !strings.Contains(string(a.Body), "Signed in") {
		t.Fatalf("yes answered %d %s", a.Status, a.Body)
	}
	for _, decision := range []string{"allow", "deny", ""} { // a second answer changes nothing
		if a := l.send("/device", url.Values{"user_code": {given.UserCode}, "decision": {decision}}); a.Status != 422 {
			t.Errorf("%q after the answer: %d", decision, a.Status)
		}
	}
	given.Interval = 1
	ctx, cancel := context.WithTimeout(l.ctx(), 10*time.Second)
	defer cancel()
	token, err := p.DeviceAccessToken(ctx, given)
	if err != nil {
		t.Fatal(err)
	}
	if who := servertest.Must[api.Whoami](l.As(token.AccessToken), 200, "GET", "/api/v1/whoami", nil); who.Name != "owner" {
		t.Errorf("it acts as %+v", who)
	}
	if status, word, _ := l.ask(given.DeviceCode); status != 400 || word != "invalid_grant" {
		t.Errorf("a code that was traded answered %d %s", status, word)
	}
}

func (l *lobby) device() *oauth2.DeviceAuthResponse {
	l.tb.Helper()
	given, err := l.program().DeviceAuth(l.ctx())
	if err != nil {
		l.tb.Fatal(err)
	}
	return given
}

func TestOAuth_DevicesThatAreRefused(t *testing.T) {
	l := newLobby(t)
	denied := l.device()
	if a := l.send("/device", url.Values{"user_code": {denied.UserCode}, "decision": {"deny"}}); a.Status != 200 {
		t.Fatalf("no answered %d %s", a.Status, a.Body)
	}
	if status, word, _ := l.ask(denied.DeviceCode); status != 400 || word != "access_denied" {
		t.Errorf("a device that was refused: %d %s", status, word)
	}
	if status, word, _ := l.ask(denied.UserCode); status != 400 || word != "invalid_grant" {
		t.Errorf("the shown code in place of the secret one: %d %s", status, word)
	}
	late := l.device()
	l.clock.step(10*time.Minute + time.Second)
	if a := l.send("/device", url.Values{"user_code": {late.UserCode}, "decision": {"allow"}}); a.Status != 422 {
		t.Errorf("yes after ten minutes answered %d", a.Status)
	}
	if status, word, _ := l.ask(late.DeviceCode); status != 400 || word != "expired_token" {
		t.Errorf("a device that waited for too long: %d %s", status, word)
	}
	form := url.Values{"client_id": {"evil"}}
	if a := l.Do("POST", "/oauth/device", form.Encode(), servertest.With("Authorization", ""), servertest.With("Content-Type", formType)); a.Status != 400 {
		t.Errorf("an unknown program got %d %s", a.Status, a.Body)
	}
}

// A client that keeps the pace never gets slow_down, with a little jitter or without; one that
// was too fast is served again at the slower pace.
func TestOAuth_DevicesAreToldToSlowDown(t *testing.T) {
	l := newLobby(t)
	given := l.device()
	for i := range 20 {
		if _, word, _ := l.ask(given.DeviceCode); word != "authorization_pending" {
			t.Fatalf("question %d at the pace answered %s", i, word)
		}
		l.clock.step(5*time.Second + time.Duration(i%3-1)*300*time.Millisecond)
	}
	for range 5 {
		l.ask(given.DeviceCode)
	}
	if _, word, _ := l.ask(given.DeviceCode); word != "slow_down" {
		t.Errorf("the sixth question at once answered %s", word)
	}
	// A yes doesn't help a client that is too fast.
	l.send("/device", url.Values{"user_code": {given.UserCode}, "decision": {"allow"}})
	if _, word, _ := l.ask(given.DeviceCode); word != "slow_down" {
		t.Errorf("the next question at once answered %s", word)
	}
	l.clock.step(10 * time.Second)
	if status, word, _ := l.ask(given.DeviceCode); status != 200 {
		t.Errorf("at the slower pace: %d %s", status, word)
	}
}

// Guessing codes is soon stopped, and doesn't affect a waiting device.
func TestOAuth_TypedCodesAreCounted(t *testing.T) {
	l := newLobby(t)
	given := l.device()
	wrong := 0
	for i := range 20 {
		a := l.send("/device", url.Values{"user_code": {"BBBB-BBB" + string("CDFGHJKLMNPQRSTVWXZC"[i])}, "decision": {"allow"}})
		switch a.Status {
		case http.StatusUnprocessableEntity:
			wrong++
		case http.StatusTooManyRequests:
			if n, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || n < 1 || n > 61 {
				t.Errorf("Retry-After is %q", a.Header.Get("Retry-After"))
			}
		default:
			t.Fatalf("guess %d answered %d %s", i, a.Status, a.Body)
		}
	}
	if wrong != 5 {
		t.Errorf("%d guesses were looked at, not 5", wrong)
	}
	l.clock.step(61 * time.Second)
	if a := l.send("/device", url.Values{"user_code": {given.UserCode}, "decision": {"allow"}}); a.Status != 200 {
		t.Errorf("the right code a minute later answered %d %s", a.Status, a.Body)
	}
	// Nobody can fill the store with codes either.
	for i := range 31 {
		form := url.Values{"client_id": {account.CLI}}
		a := l.Do("POST", "/oauth/device", form.Encode(), servertest.With("Authorization", ""), servertest.With("Content-Type", formType))
		if want := map[bool]int{true: 200, false: 429}[i < 30]; a.Status != want {
			t.Fatalf("device %d answered %d %s", i, a.Status, a.Body)
		}
	}
}
