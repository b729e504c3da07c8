package server

import (
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"stint/api"
)

const (
	signInRoute = "/signin"
	signInStyle = "/signin.css"
	maxForm     = 8 << 10
)

//go:embed signin.html signin.css
var signInFiles embed.FS

var signInTemplate = template.Must(template.ParseFS(signInFiles, "signin.html"))

// isSignIn reports whether the request is the one write that may come from
// another origin: `stint open` posts from a file of its own, whose origin is
// null. The one-time link in it is proof enough, and no cookie is read.
func isSignIn(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Path == signInRoute
}

func signInPath(next string) string {
	if next = samePlace(next); next == "/" {
		return signInRoute
	}
	return signInRoute + "?next=" + url.QueryEscape(next)
}

// samePlace keeps a path of this server and turns everything else into "/", so
// that signing in never leads elsewhere.
func samePlace(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || u.Opaque != "" ||
		!strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.Contains(next, `\`) {
		return "/"
	}
	return next
}

// signInPage says how to sign in; someone who is signed in goes on.
func (s *Server) signInPage(x *exchange) (answer, error) {
	if _, err := s.signedIn(x.r.Context(), x.r); err == nil {
		return x.seeOther(samePlace(x.r.URL.Query().Get("next")))
	}
	return x.signInHTML(http.StatusOK, "")
}

func (x *exchange) signInHTML(status int, problem string) (answer, error) {
	x.Header().Set("Content-Type", "text/html; charset=utf-8")
	x.WriteHeader(status)
	return answer{written: true}, signInTemplate.Execute(x, problem)
}

func (s *Server) signInSheet(x *exchange) (answer, error) {
	sheet, err := signInFiles.ReadFile("signin.css")
	if err != nil {
		return answer{}, err
	}
	x.Header().Set("Content-Type", "text/css; charset=utf-8")
	x.WriteHeader(http.StatusOK)
	_, _ = x.Write(sheet) // a client that went away is no failure of ours
	return answer{written: true}, nil
}

// signIn trades a one-time link for a cookie (contract 8.1).
func (s *Server) signIn(x *exchange) (answer, error) {
	form, err := x.form()
	if err != nil {
		return answer{}, err
	}
	cookie, expires, err := s.engine.SignIn(x.r.Context(), form.Get("link"))
	var refused *api.Error
	if errors.As(err, &refused) && strings.Contains(x.r.Header.Get("Accept"), "text/html") {
		return x.signInHTML(statusOf[refused.Code], "This link was used already, or it is older than 10 minutes.")
	}
	if err != nil {
		return answer{}, err
	}
	// Whoever was signed in before in this browser is not any more.
	if old := cookieOf(x.r); old != "" {
		s.rights.forget(old)
		if err := s.engine.SignOut(x.r.Context(), old); err != nil && !errors.As(err, &refused) {
			return answer{}, err
		}
	}
	http.SetCookie(x, &http.Cookie{
		Name: cookieName, Value: cookie, Path: "/", Expires: expires,
		HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
	next := form.Get("next")
	if next == "" {
		next = x.r.URL.Query().Get("next")
	}
	return x.seeOther(samePlace(next))
}

// newSignInLink makes a one-time link for the caller's own browser: `stint open`
// asks for it with the owner's token and hands it over in a file that posts it
// (contract 8.1).
func (s *Server) newSignInLink(x *exchange) (answer, error) {
	if err := x.decodeOptional(&noBody{}); err != nil {
		return answer{}, err
	}
	link, err := s.engine.NewLink(x.r.Context(), x.grant.who)
	return answer{status: http.StatusCreated, body: api.SignInLink{Link: link}}, err
}

// signOut ends the browser's sign-in. A bearer token isn't ended by it.
func (s *Server) signOut(x *exchange) (answer, error) {
	if old := cookieOf(x.r); old != "" {
		s.rights.forget(old)
		if err := s.engine.SignOut(x.r.Context(), old); err != nil {
			return answer{}, err
		}
	}
	http.SetCookie(x, &http.Cookie{
		Name: cookieName, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteLaxMode,
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

func (x *exchange) seeOther(path string) (answer, error) {
	x.Header().Set("Location", path)
	x.WriteHeader(http.StatusSeeOther)
	return answer{written: true}, nil
}
