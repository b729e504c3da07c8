package server

import (
	"cmp"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"stint/account"
	"stint/api"
	"stint/web"
)

const (
	allow = "allow"
	deny  = "deny"
)

// inPerson refuses everything except a browser in which a person signed in: a program must not
// extend its own sign-in, or create another, beyond what it was given.
func (x *exchange) inPerson() error {
	if x.r.Header["Authorization"] != nil || x.grant.who.Client != "" || !x.grant.who.Person() {
		return api.Refuse(api.CodeUserTokenRequired, "Only a person can do this, signed in in a browser.")
	}
	return nil
}

// asked is a program's request to be signed in, checked.
type asked struct {
	client account.Client
	grant  account.Grant
	state  string
}

// asks reads what a program requests. If the client or the redirect_uri is invalid only the
// person learns of it: nothing vouches for where the answer would go. Any other fault is
// reported to the program (refusal).
func (x *exchange) asks(form url.Values) (a asked, refusal, err error) {
	client, ok, err := x.server.accounts.ClientOf(x.r.Context(), form.Get("client_id"))
	if err != nil {
		return a, nil, err
	}
	if !ok || len(form["client_id"]) != 1 {
		return a, nil, api.Refuse(api.CodeMalformed, "The program that wants to be signed in is not known here.")
	}
	if uri := form["redirect_uri"]; len(uri) != 1 || !client.Redirect(uri[0]) {
		return a, nil, api.Refuse(api.CodeMalformed, "The program's answer would go to an address that it has not registered. Nothing was done.")
	}
	a = asked{client: client, state: form.Get("state"), grant: account.Grant{
		Client: client.ID, Redirect: form.Get("redirect_uri"), Challenge: form.Get("code_challenge"),
	}}
	resource, refusal := x.server.resourceOf(form)
	if resource != nil {
		a.grant.Resource = *resource
	}
	sum, notBase64 := base64.RawURLEncoding.Strict().DecodeString(a.grant.Challenge)
	bad := func(code, detail string) (asked, error, error) {
		return a, &account.OAuthError{Code: code, Detail: detail}, nil
	}
	switch {
	case once(form) != nil:
		return a, once(form), nil
	case form.Has("request") || form.Has("request_uri"):
		return bad("request_not_supported", "Send the parameters themselves.")
	case form.Get("response_type") != "code":
		return bad("unsupported_response_type", "The response type is code.")
	case form.Get("response_mode") != "" && form.Get("response_mode") != "query":
		return bad("invalid_request", "The response mode is query.")
	case form.Get("code_challenge_method") != "S256" || notBase64 != nil || len(sum) != 32:
		return bad("invalid_request", "A code_challenge by the method S256 is needed (RFC 7636).")
	}
	if refusal == nil {
		a.grant.Scopes, refusal = granted(form, a.grant.Resource)
	}
	return a, refusal, nil
}

// back sends the browser to the program with an answer. It names who answers, so that a
// program can't be made to take it for another server's (RFC 9207).
func (x *exchange) back(a asked, told url.Values) (response, error) {
	if a.state != "" {
		told.Set("state", a.state)
	}
	told.Set("iss", x.server.here(x.r))
	return x.seeOther(a.grant.Redirect + "?" + told.Encode())
}

func refusalValues(err error) url.Values {
	var refused *account.OAuthError
	if !errors.As(err, &refused) {
		return url.Values{"error": {"server_error"}}
	}
	return url.Values{"error": {refused.Code}, "error_description": {refused.Detail}}
}

// consentPage asks a person whether a program may act for them.
func (s *Server) consentPage(x *exchange) (response, error) {
	if err := x.inPerson(); err != nil {
		return response{}, err
	}
	form := x.r.URL.Query()
	a, refusal, err := x.asks(form)
	if err != nil {
		return x.doorRefusal(err)
	}
	if refusal != nil {
		return x.back(a, refusalValues(refusal))
	}
	p := doorPage{
		Title: "Sign a program in?", Action: authorizeRoute, Text: consentWords(a),
		Facts: []doorFact{
			{"Program", a.client.Name}, {"Acts as", x.grant.who.Name}, {"Answer goes to", answerPlace(a.grant.Redirect)},
		},
		Choices: []doorChoice{{allow, "Sign it in"}, {deny, "No"}},
	}
	if a.grant.Resource == mcpRoute {
		p.Facts = append(p.Facts, doorFact{"May use", "the tools at " + mcpRoute + ": " + cmp.Or(a.grant.Scopes, "all of them")})
	}
	if !a.client.Registered.IsZero() {
		p.Facts[0].Name = "Calls itself"
		p.Facts = append(p.Facts, doorFact{"Registered itself", a.client.Registered.UTC().Format("2006-01-02 15:04") + " UTC from " + a.client.Address})
	}
	for _, name := range []string{"client_id", "redirect_uri", "response_type", "code_challenge", "code_challenge_method", "state", "scope", "resource"} {
		for _, value := range form[name] {
			p.Hidden = append(p.Hidden, doorFact{name, value})
		}
	}
	x.Header().Set("Content-Security-Policy", web.PagePolicyTo(formTarget(a.grant.Redirect)))
	return x.door(http.StatusOK, p)
}

// consentWords say what a yes means, and what nobody has checked (contract 8.2).
func consentWords(a asked) string {
	const may = "It may then do what you may do here, except give approvals or create anything that outlasts it, such as keys and members, until you sign it out under Settings → Account. "
	u, err := url.Parse(a.grant.Redirect)
	switch {
	case a.client.Registered.IsZero():
		return "It may then do here what you may do, until you sign it out under Settings → Account. Say no unless you have just started it."
	case err == nil && account.OnThisMachine(u.Hostname()):
		return may + "Nobody has checked who it is: it registered itself, and any program on your machine can wait for the answer. Say no unless you have just started it yourself."
	}
	return may + "Nobody has checked who it is: it registered itself, under a name of its choosing. Say no unless you know the place where the answer goes, and have just come from there."
}

func answerPlace(redirect string) string {
	u, err := url.Parse(redirect)
	if err != nil {
		return redirect
	}
	if account.OnThisMachine(u.Hostname()) {
		return "a program on this machine, " + u.Host
	}
	return u.Host
}

// formTarget is the target of a redirect in the form of a content policy, which knows no IPv6
// addresses.
func formTarget(redirect string) string {
	u, err := url.Parse(redirect)
	if err != nil || strings.Contains(u.Host, "[") {
		return "http:"
	}
	return u.Scheme + "://" + u.Host
}

// consent takes the person's answer.
func (s *Server) consent(x *exchange) (response, error) {
	if err := x.inPerson(); err != nil {
		return response{}, err
	}
	form, err := x.form()
	if err != nil {
		return response{}, err
	}
	a, refusal, err := x.asks(form)
	if err != nil {
		return x.doorRefusal(err)
	}
	if refusal != nil {
		return x.back(a, refusalValues(refusal))
	}
	if form.Get("decision") != allow {
		return x.back(a, url.Values{"error": {"access_denied"}, "error_description": {"The answer was no."}})
	}
	code, err := s.accounts.GiveCode(x.r.Context(), x.grant.who, a.grant)
	if err != nil {
		return response{}, err
	}
	return x.back(a, url.Values{"code": {code}})
}

// doorRefusal tells a person on a page what can't be done.
func (x *exchange) doorRefusal(err error) (response, error) {
	if status, problems, ok := x.asPage(err); ok {
		return x.door(status, doorPage{Title: "This can't be done", Problems: problems})
	}
	return response{}, err
}

// devicePage asks for the code that a program shows. No link can fill it in: whoever types it
// has the program in front of them.
func (s *Server) devicePage(x *exchange) (response, error) {
	if err := x.inPerson(); err != nil {
		return response{}, err
	}
	return x.showDevice(http.StatusOK)
}

func (x *exchange) showDevice(status int, problems ...string) (response, error) {
	return x.door(status, doorPage{
		Title: "Sign a program in", Action: verifyRoute, Do: "Go on", Problems: problems,
		Text: "Type the code that the program shows. Never type one that somebody sent you.",
		Fields: []doorField{{
			ID: "user_code", Label: "Code", Type: "text", Complete: "off", Hint: "Eight letters, such as BCDF-GHJK", Required: true,
		}},
	})
}

// verifyDevice shows what a typed code would sign in, and then takes the answer.
func (s *Server) verifyDevice(x *exchange) (response, error) {
	if err := x.inPerson(); err != nil {
		return response{}, err
	}
	form, err := x.form()
	if err != nil {
		return response{}, err
	}
	ctx, code, from := x.r.Context(), form.Get("user_code"), s.from(x.r)
	switch form.Get("decision") {
	case allow:
		if err = s.accounts.Allow(ctx, x.grant.who, code, from); err == nil {
			return x.door(http.StatusOK, doorPage{Title: "Signed in", Text: "The program goes on within a few seconds. You can close this page. Settings → Account signs it out again."})
		}
	case deny:
		if err = s.accounts.Deny(ctx, x.grant.who, code, from); err == nil {
			return x.door(http.StatusOK, doorPage{Title: "Refused", Text: "The program was told no. You can close this page."})
		}
	default:
		var asking account.Asking
		if asking, err = s.accounts.Asked(ctx, x.grant.who, code, from); err == nil {
			return x.door(http.StatusOK, doorPage{
				Title: "Sign this program in?", Action: verifyRoute,
				Text: "It may then do here what you may do, until you sign it out under Settings → Account. Say no unless you started it yourself, there.",
				Facts: []doorFact{
					{"Program", asking.Client},
					{"Calls itself", asking.From.Label},
					{"Asks from", asking.From.Address},
					{"Since", asking.Since.UTC().Format("15:04:05") + " UTC"},
					{"Acts as", x.grant.who.Name},
				},
				Hidden: []doorFact{{"user_code", code}}, Choices: []doorChoice{{allow, "Sign it in"}, {deny, "No"}},
			})
		}
	}
	if status, problems, ok := x.asPage(err); ok {
		return x.showDevice(status, problems...)
	}
	return response{}, err
}
