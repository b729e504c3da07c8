package web

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// prefs are what readers chose for their browser. They are kept in its cookies, which the
// page's script may write too; an invalid value is ignored.
type prefs struct {
	theme   string
	density string
	keys    bool
	zone    *time.Location
}

func prefsOf(r *http.Request, zone *time.Location) prefs {
	p := prefs{theme: "auto", density: "auto", keys: true, zone: zone}
	for _, t := range themes {
		if cookie(r, "stint_theme") == t.value {
			p.theme = t.value
		}
	}
	if cookie(r, "stint_density") == "compact" {
		p.density = "compact"
	}
	p.keys = cookie(r, "stint_keys") != "off"
	if name, err := url.QueryUnescape(cookie(r, "stint_zone")); err == nil && name != "" && name != "Local" {
		if l, err := time.LoadLocation(name); err == nil {
			p.zone = l
		}
	}
	return p
}

func cookie(r *http.Request, name string) string {
	c, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return c.Value
}

// preferences is how a choice is kept where scripts are off.
func (v *visit) preferences() error {
	for _, t := range themes {
		if v.r.PostForm.Get("theme") == t.value {
			http.SetCookie(v, &http.Cookie{Name: "stint_theme", Value: t.value, Path: "/", MaxAge: 365 * 24 * 3600, SameSite: http.SameSiteLaxMode})
		}
	}
	return v.to(v.back(), "")
}

// back is the page of ours that the form was on.
func (v *visit) back() string {
	u, err := url.Parse(v.r.Referer())
	if err != nil || u.Host != v.r.Host {
		return "/"
	}
	below, ok := strings.CutPrefix(u.Path, BaseOf(v.r.Context()))
	if !ok || !strings.HasPrefix(below, "/") || strings.HasPrefix(below, "//") {
		return "/"
	}
	return (&url.URL{Path: below, RawQuery: u.RawQuery}).RequestURI()
}
