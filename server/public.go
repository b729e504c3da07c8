package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"stint/engine"
)

// Public says how a server is reached from other machines. The zero value says
// that it isn't.
type Public struct {
	URL     *url.URL       // where a proxy serves it by https; nil = only on this machine
	Hosts   []string       // further Host values that are ours, port included where one is sent
	Proxies []netip.Prefix // whose forwarded headers are believed
}

// ParsePublic reads what an operator says: the public URL, further host names,
// and the proxies' addresses or networks.
func ParsePublic(publicURL string, hosts, proxies []string) (Public, error) {
	var p Public
	if publicURL != "" {
		u, err := url.Parse(publicURL)
		switch {
		case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
			return p, fmt.Errorf("%q is no public URL: write it as https://stint.example.com", publicURL)
		case u.Scheme != "https":
			return p, fmt.Errorf("%q is not https: passwords would cross the network in the clear", publicURL)
		case strings.Trim(u.Path, "/") != "":
			return p, fmt.Errorf("%q has a path: stint needs a host name of its own", publicURL)
		}
		u.Host = strings.ToLower(strings.TrimSuffix(u.Host, ":443"))
		p.URL = &url.URL{Scheme: u.Scheme, Host: u.Host}
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

// origin is the server as the client of a request sees it.
func (s *Server) origin(r *http.Request) string {
	if s.secure(r) {
		return s.public.URL.String()
	}
	return "http://" + r.Host
}

// clientOf is the address that a request comes from: the connection's, or, where
// that is a trusted proxy, what it and the proxies before it say, read from the
// right to the first one that nobody vouches for.
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

// onThisMachine reports whether a request comes from the machine itself: by a
// loopback connection and under a name of this machine, not through a proxy.
func (s *Server) onThisMachine(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	local := host == "localhost" || strings.HasSuffix(host, ".localhost")
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		local = ip.IsLoopback()
	}
	return local && r.Header.Get("X-Forwarded-For") == "" && s.clientOf(r).IsLoopback()
}

// elsewhere is the address that a request comes from, "" for this machine.
func (s *Server) elsewhere(r *http.Request) string {
	if addr := s.clientOf(r); addr.IsValid() && !addr.IsLoopback() {
		return addr.String()
	}
	return ""
}

// from is where a request comes from, for the list of sign-ins.
func (s *Server) from(r *http.Request) engine.From {
	return engine.From{Label: browserName(r.UserAgent()), Address: s.clientOf(r).String()}
}

// browserNames are looked for in this order: most browsers also name others.
var browserNames = []struct{ mark, name string }{
	{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"},
}

var systemNames = []struct{ mark, name string }{
	{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"},
}

// browserName is a User-Agent as a person says it: “Firefox on Linux”.
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
