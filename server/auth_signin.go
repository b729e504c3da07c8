package server

import (
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"stint/api"
	"stint/web"
)

const (
	signInRoute  = "/signin"
	signInStyle  = "/signin.css"
	signInFont   = "/signin.woff2"
	signInScript = "/signin.js"
	maxForm      = 8 << 10
)

//go:embed signin.html signin.css signin.js
var signInFiles embed.FS

var signInTemplate = template.Must(template.ParseFS(signInFiles, "signin.html"))

// isSignIn reports whether the request is the one write that may come from another origin:
// `stint open` posts from a file of its own, whose origin is null. The one-time link in it is
// proof enough, since only the token in the data directory can create one, and no cookie is
// read. A password in it is not such a proof: that is checked where the form is read.
func isSignIn(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Path == signInRoute
}

func signInPath(next string) string {
	if next = samePlace(next); next == "/" {
		return signInRoute
	}
	return signInRoute + "?next=" + url.QueryEscape(next)
}

// samePlace keeps a path of this server and turns everything else into "/", so that signing in
// never leads elsewhere.
func samePlace(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || u.Opaque != "" ||
		!strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.Contains(next, `\`) {
		return "/"
	}
	return next
}

// signInPage asks for name and password, and says how to sign in without; somebody who is
// signed in goes on.
func (s *Server) signInPage(x *exchange) (response, error) {
	next := samePlace(x.r.URL.Query().Get("next"))
	if _, err := s.signedIn(x.r.Context(), x.r); err == nil {
		return x.seeOther(next)
	}
	return x.showSignIn(http.StatusOK, next, "")
}

func (x *exchange) showSignIn(status int, next, login string, problems ...string) (response, error) {
	unset, err := x.server.accounts.NeedsSetUp(x.r.Context())
	if err != nil {
		return response{}, err
	}
	p := doorPage{Title: "Sign in to stint", Problems: problems, Action: signInRoute}
	p.Leave, p.Provider = x.server.providerLink(next)
	if next != "/" {
		p.Next = next
	}
	if unset {
		p.Terminal = "Run this in a terminal on the machine where stint runs. It opens this page signed in."
		return x.door(status, p)
	}
	p.Do = "Sign in"
	p.Terminal = "Or run this in a terminal on the machine where stint runs. It opens this page signed in."
	p.Fields = []doorField{
		{ID: "login", Label: "Name", Type: "text", Value: login, Complete: "username", Required: true},
		{ID: "password", Label: "Password", Type: "password", Complete: "current-password", Required: true},
	}
	return x.door(status, p)
}

// doorPage is a page for somebody who isn't signed in.
type doorPage struct {
	Title, Text, Action, Do, Next, Terminal string

	Problems []string
	Facts    []doorFact
	Fields   []doorField
	Hidden   []doorFact   // further fields of the form that aren't shown
	Choices  []doorChoice // buttons in place of Do
	Also     string       // a second button, which goes on to the external provider

	base     string // below which the request came
	Provider string // what the links to the external provider say
	Leave    string // where a page leads to sign in there instead
	Onward   string // where it leads by itself
	Back     string
}

// At is a path of this server as the page has to write it.
func (p doorPage) At(path string) string { return p.base + path }

type doorFact struct{ Name, Value string }

// doorChoice is a button that answers the form's question with a decision.
type doorChoice struct{ Decision, Label string }

type doorField struct {
	ID, Label, Type, Value, Complete, Hint string
	Required                               bool
}

func (x *exchange) door(status int, p doorPage) (response, error) {
	p.base = web.BaseOf(x.r.Context())
	x.Header().Set("Content-Type", "text/html; charset=utf-8")
	x.WriteHeader(status)
	return response{written: true}, signInTemplate.Execute(x, p)
}

// asPage reports whether a refusal is shown to a person; problems are its words.
func (x *exchange) asPage(err error) (status int, problems []string, ok bool) {
	var refused *api.Error
	if !errors.As(err, &refused) || !strings.Contains(x.r.Header.Get("Accept"), "text/html") {
		return 0, nil, false
	}
	for _, f := range refused.Fields {
		problems = append(problems, strings.ToUpper(f.Field[:1])+f.Field[1:]+" "+f.Detail+".")
	}
	if len(problems) == 0 {
		problems = []string{refused.Detail}
	}
	if refused.RetryIn > 0 {
		x.Header().Set("Retry-After", strconv.Itoa(refused.RetryIn))
		problems = append(problems, "Try again in "+strconv.Itoa(refused.RetryIn)+" seconds.")
	}
	return statusOf[refused.Code], problems, true
}

func (s *Server) signInStyles(x *exchange) (response, error) {
	return x.file("signin.css", "text/css; charset=utf-8")
}

// signInTypeface serves the dashboard's own typeface, which otherwise needs a sign-in.
func (s *Server) signInTypeface(x *exchange) (response, error) {
	x.Header().Set("Content-Type", "font/woff2")
	x.WriteHeader(http.StatusOK)
	_, _ = x.Write(web.Font()) // a client that went away isn't our failure
	return response{written: true}, nil
}

func (s *Server) signInJS(x *exchange) (response, error) {
	return x.file("signin.js", "text/javascript; charset=utf-8")
}

func (x *exchange) file(name, kind string) (response, error) {
	text, err := signInFiles.ReadFile(name)
	if err != nil {
		return response{}, err
	}
	x.Header().Set("Content-Type", kind)
	x.WriteHeader(http.StatusOK)
	_, _ = x.Write(text) // a client that went away isn't our failure
	return response{written: true}, nil
}

// signIn exchanges a one-time link, or a name and a password, for a cookie (contract 8.1).
func (s *Server) signIn(x *exchange) (response, error) {
	form, err := x.form()
	if err != nil {
		return response{}, err
	}
	next := form.Get("next")
	if next == "" {
		next = x.r.URL.Query().Get("next")
	}
	var cookie string
	var expires time.Time
	if form.Has("password") {
		// A page of another site must not sign a browser in as somebody else.
		if s.origins.Check(x.r) != nil {
			return response{}, errCrossOrigin
		}
		cookie, expires, err = s.accounts.SignInWithPassword(x.r.Context(), form.Get("login"), form.Get("password"), s.from(x.r))
	} else {
		cookie, expires, err = s.accounts.SignIn(x.r.Context(), form.Get("link"), s.from(x.r))
	}
	if status, problems, ok := x.asPage(err); ok {
		return x.showSignIn(status, samePlace(next), form.Get("login"), problems...)
	}
	if err != nil {
		return response{}, err
	}
	return x.signedInTo(cookie, expires, next)
}

// signedInTo gives the browser its cookie and sends it on. An earlier sign-in of this browser
// ends.
func (x *exchange) signedInTo(cookie string, expires time.Time, next string) (response, error) {
	s := x.server
	if old := s.cookieOf(x.r); old != "" {
		if err := s.accounts.SignOut(x.r.Context(), old); err != nil {
			return response{}, err
		}
	}
	http.SetCookie(x, &http.Cookie{
		Name: s.cookieName(x.r), Value: cookie, Path: "/", Expires: expires, Secure: s.secure(x.r),
		HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
	return x.seeOther(samePlace(next))
}

// newSignInLink creates a one-time link for the caller's own browser: `stint open` asks for it
// with the token in the data directory, the only one that can create such links, and hands it
// over in a file that posts it (contract 8.1).
func (s *Server) newSignInLink(x *exchange) (response, error) {
	if err := x.decodeOptional(&noBody{}); err != nil {
		return response{}, err
	}
	link, err := s.accounts.NewLink(x.r.Context(), x.grant.who)
	return response{status: http.StatusCreated, body: api.SignInLink{Link: link}}, err
}

// signOut ends the browser's sign-in. It doesn't end a bearer token.
func (s *Server) signOut(x *exchange) (response, error) {
	if old := s.cookieOf(x.r); old != "" {
		if err := s.accounts.SignOut(x.r.Context(), old); err != nil {
			return response{}, err
		}
	}
	http.SetCookie(x, &http.Cookie{
		Name: s.cookieName(x.r), Path: "/", MaxAge: -1, Secure: s.secure(x.r), HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
	return x.seeOther(signInRoute)
}

func (x *exchange) form() (url.Values, error) {
	kind, _, _ := strings.Cut(x.r.Header.Get("Content-Type"), ";")
	if strings.TrimSpace(kind) != "application/x-www-form-urlencoded" {
		return nil, api.Refuse(api.CodeUnsupportedType, "Send the form as application/x-www-form-urlencoded.")
	}
	x.r.Body = http.MaxBytesReader(x.ResponseWriter, x.r.Body, maxForm)
	err := x.r.ParseForm()
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, api.Refuse(api.CodeTooLarge, "The form is over 8 KiB.")
	}
	if err != nil {
		return nil, api.Refuse(api.CodeMalformed, "The form can't be read.")
	}
	return x.r.PostForm, nil
}

// seeOther sends the browser on, to a path of this server or to another one.
func (x *exchange) seeOther(path string) (response, error) {
	x.Header().Set("Location", web.Address(x.r.Context(), path))
	x.WriteHeader(http.StatusSeeOther)
	return response{written: true}, nil
}
