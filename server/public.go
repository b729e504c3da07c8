package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"stint/account"
	"stint/api"
	"stint/web"
)

// Public says how a server is reached from other machines. The zero value says that it isn't.
type Public struct {
	URL     *url.URL       // where a proxy serves it by https, a path included; nil = only on this machine
	Hosts   []string       // further Host values that are ours, port included where one is sent
	Proxies []netip.Prefix // whose forwarded headers are believed
}

// ParsePublic reads what an operator says: the public URL, further host names, and the
// proxies' addresses or networks.
func ParsePublic(publicURL string, hosts, proxies []string) (Public, error) {
	var p Public
	if publicURL != "" {
		u, err := url.Parse(publicURL)
		switch {
		case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
			return p, fmt.Errorf("%q is no public URL: write it as https://stint.example.com", api.BareURL(publicURL))
		case u.Scheme != "https":
			return p, fmt.Errorf("%q is not https: passwords would cross the network in the clear", api.BareURL(publicURL))
		}
		base := strings.TrimRight(u.Path, "/")
		if base != "" && (u.RawPath != "" || !plainPath.MatchString(base) || path.Clean(base) != base) {
			return p, fmt.Errorf("the path of %q holds more than letters, digits and . _ ~ - between single slashes", api.BareURL(publicURL))
		}
		u.Host = strings.ToLower(strings.TrimSuffix(u.Host, ":443"))
		p.URL = &url.URL{Scheme: u.Scheme, Host: u.Host, Path: base}
	}
	for _, h := range hosts {
		if h == "" || strings.ContainsAny(h, "/*@ ") {
			return p, fmt.Errorf("%q is no host name", h)
		}
		p.Hosts = append(p.Hosts, strings.ToLower(h))
	}
	for _, text := range proxies {
		prefix, err := netip.ParsePrefix(text)
		if ip, ipErr := netip.ParseAddr(text); ipErr == nil {
			prefix, err = ip.Prefix(ip.BitLen())
		}
		if err != nil {
			return p, fmt.Errorf("%q is no address and no network such as 10.0.0.0/8", text)
		}
		p.Proxies = append(p.Proxies, prefix)
	}
	return p, nil
}

// plainPath is a path in which every character stands for itself, in URLs, in HTML and in
// headers alike.
var plainPath = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)+$`)

// base is the path of the public URL, "" for none.
func (p Public) base() string {
	if p.URL == nil {
		return ""
	}
	return p.URL.Path
}

// names are the Host values that the public side adds.
func (p Public) names() []string {
	names := slices.Clone(p.Hosts)
	if p.URL != nil {
		names = append(names, p.URL.Host)
	}
	return names
}

// secure reports whether a request came by the public https address.
func (s *Server) secure(r *http.Request) bool {
	return s.public.URL != nil && strings.EqualFold(r.Host, s.public.URL.Host)
}

// origin is the scheme and host by which a request came.
func (s *Server) origin(r *http.Request) string {
	if s.secure(r) {
		return "https://" + s.public.URL.Host
	}
	return "http://" + r.Host
}

// reached is the server as other programs are to call it: the operator's public URL, however
// the present request came in.
func (s *Server) reached(r *http.Request) string {
	if s.public.URL != nil {
		return s.public.URL.String()
	}
	return s.here(r)
}

// here is the server as the client of a request sees it: its origin and the path below which
// the request came.
func (s *Server) here(r *http.Request) string {
	return s.origin(r) + web.BaseOf(r.Context())
}

// below removes the path of the public URL from a request, so that everything that follows
// sees one form of each path. Programs on this machine may leave the path out. It is false for
// requests that the proxy should not have sent here.
func (s *Server) below(r *http.Request) (*http.Request, bool) {
	base := s.public.base()
	if base == "" {
		return r, true
	}
	u := *r.URL
	if wellKnown, ok := wellKnownOf(u.Path, base); ok && u.RawPath == "" {
		u.Path = wellKnown
	} else {
		ok := underBase(&u.Path, base) && (u.RawPath == "" || underBase(&u.RawPath, base))
		if !ok {
			return r, !s.secure(r)
		}
	}
	r = r.WithContext(web.WithBase(r.Context(), base))
	r.URL = &u
	return r, true
}

// wellKnownOf finds the metadata of what lies below base: what is said of a path is served at
// the root (RFC 8414, 9728).
func wellKnownOf(at, base string) (string, bool) {
	for _, of := range []string{authServerRoute, resourceRoute} {
		if part, ok := strings.CutPrefix(at, of+base); ok && (part == "" || of == resourceRoute && part == mcpRoute) {
			return of + part, true
		}
	}
	return "", false
}

// underBase removes base from a path that lies below it.
func underBase(at *string, base string) bool {
	rest, ok := strings.CutPrefix(*at, base)
	if !ok || rest != "" && rest[0] != '/' {
		return false
	}
	if rest == "" {
		rest = "/"
	}
	*at = rest
	return true
}

// clientOf is the address that a request comes from: the connection's, or, if that is a
// trusted proxy, what it and the proxies before it say, read from the right up to the first
// address that isn't trusted.
func (s *Server) clientOf(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	client := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && s.trusted(client); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		client = hop.Unmap()
	}
	return client
}

func (s *Server) trusted(addr netip.Addr) bool {
	return slices.ContainsFunc(s.public.Proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// onThisMachine reports whether a request comes from the machine itself: by a loopback
// connection and under a name of this machine, not through a proxy.
func (s *Server) onThisMachine(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	return api.IsThisMachine(host) && r.Header.Get("X-Forwarded-For") == "" && s.clientOf(r).IsLoopback()
}

// elsewhere is the address that a request comes from, "" for this machine.
func (s *Server) elsewhere(r *http.Request) string {
	if addr := s.clientOf(r); addr.IsValid() && !addr.IsLoopback() {
		return addr.String()
	}
	return ""
}

// from is where a request comes from, for the list of sign-ins.
func (s *Server) from(r *http.Request) account.From {
	return account.From{Label: browserName(r.UserAgent()), Address: s.clientOf(r).String()}
}

// browserNames are looked for in this order: most browsers also name others.
var browserNames = []struct{ mark, name string }{
	{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"},
}

var systemNames = []struct{ mark, name string }{
	{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"},
}

// browserName is a User-Agent in a person's words: “Firefox on Linux”.
func browserName(agent string) string {
	for _, b := range browserNames {
		if !strings.Contains(agent, b.mark) {
			continue
		}
		for _, o := range systemNames {
			if strings.Contains(agent, o.mark) {
				return b.name + " on " + o.name
			}
		}
		return b.name
	}
	name, _, _ := strings.Cut(agent, " ")
	if name == "" {
		return "Unknown program"
	}
	return name
}
