package web

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"stint/api"
)

// failure is what an error page says.
type failure struct {
	status int
	title  string
	text   string
}

// fail answers with an error page, or only with its words if a script asked.
func (v *visit) fail(err error) {
	if errors.Is(err, context.Canceled) && v.r.Context().Err() != nil {
		return // nobody is left to answer
	}
	f := failureOf(err)
	if f.status >= http.StatusInternalServerError {
		v.web.log.Error("page failed", "method", v.r.Method, "path", v.r.URL.Path, "error", err)
	}
	if v.r.Header.Get("HX-Request") != "" {
		http.Error(v, f.title+". "+f.text, f.status)
		return
	}
	s := Shell{
		Title: f.title, Now: v.web.engine.Now(), Audits: v.caller.CanAudit(),
		Theme: v.prefs.theme, Density: v.prefs.density, Keys: v.prefs.keys,
	}
	if err := v.draw(f.status, Layout(s), errorPage(f, v.typed(), v.Header().Get("Stint-Request-Id"))); err != nil {
		v.web.log.Error("error page failed", "error", err)
		http.Error(v, f.title, f.status)
	}
}

// typed is what somebody wrote into the refused form, so that they can copy it elsewhere:
// everything longer than one word, but no password.
func (v *visit) typed() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(v.r.PostForm)) {
		text := strings.TrimSpace(v.r.PostForm.Get(name))
		if name != "password" && name != "current" && strings.ContainsAny(text, " \n") {
			out = append(out, text)
		}
	}
	return out
}

// refuse says why nobody below a role may do something, before they try.
func (v *visit) refuse(may bool, who string) error {
	if may {
		return nil
	}
	return api.Refuse(api.CodeForbidden, who+"; you are "+v.caller.Role.Noun()+" here.")
}

func failureOf(err error) failure {
	var refused *api.Error
	if !errors.As(err, &refused) {
		return failure{http.StatusInternalServerError, "Something went wrong here", "Nothing more can be said on this page; the server's log has the cause under the request's number."}
	}
	f := failure{http.StatusConflict, "That can't be done now", refused.Detail}
	switch refused.Code {
	case api.CodeNotFound:
		f.status, f.title = http.StatusNotFound, "Not found"
	case api.CodeGone:
		f.status, f.title = http.StatusGone, "Removed"
	case api.CodeUnauthenticated:
		f.status, f.title = http.StatusUnauthorized, "Signed out"
	case api.CodeForbidden:
		f.status, f.title = http.StatusForbidden, "Not allowed"
	case api.CodeMethodNotAllowed:
		f.status, f.title = http.StatusMethodNotAllowed, "Not that way"
	case api.CodeTooLarge:
		f.status, f.title = http.StatusRequestEntityTooLarge, "Too large"
	case api.CodeUnsupportedType:
		f.status, f.title = http.StatusUnsupportedMediaType, "Not a form"
	case api.CodeMalformed, api.CodeInvalid:
		f.status, f.title = http.StatusUnprocessableEntity, "Not valid"
		for _, field := range refused.Fields {
			f.text += " " + field.Field + " " + field.Detail + "."
		}
	case api.CodeTooMany:
		f.status, f.title = http.StatusTooManyRequests, "Too many requests"
	case api.CodeUnavailable, api.CodeOutcomeUnknown, api.CodeDatabaseMoved:
		f.status, f.title = http.StatusServiceUnavailable, "The store can't take writes now"
	case api.CodeTooSlow:
		f.status, f.title = http.StatusServiceUnavailable, "That takes too long"
	case api.CodeDatabaseDamaged:
		f.status, f.title = http.StatusInternalServerError, "The database is damaged"
	case api.CodeInternal:
		f.status, f.title = http.StatusInternalServerError, "Something went wrong here"
	}
	return f
}

// fieldErrors are the complaints of a refusal by the field they name; ok says that a form can
// show them.
func fieldErrors(err error) (byField map[string]string, ok bool) {
	var refused *api.Error
	if !errors.As(err, &refused) {
		return nil, false
	}
	switch refused.Code {
	case api.CodeInvalid, api.CodeSlugTaken, api.CodeIdempotencyReuse, api.CodeNotFound, api.CodeConflict:
	default:
		return nil, false
	}
	if len(refused.Fields) == 0 && refused.Code != api.CodeSlugTaken {
		return nil, false
	}
	byField = map[string]string{}
	for _, f := range refused.Fields {
		byField[f.Field] = f.Detail
	}
	if refused.Code == api.CodeSlugTaken && byField["slug"] == "" {
		byField["slug"] = refused.Detail
	}
	return byField, true
}
