package server

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"stint/api"
)

// CheckAddr refuses an address to listen on that other machines could reach, unless public
// says by which https URL they do.
func CheckAddr(addr string, public Public) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%q is no address: write it as 127.0.0.1:7717", addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q is no port: use a number from 0 to 65535", port)
	}
	if host != "localhost" && !api.IsLoopback(host) && public.URL == nil {
		return fmt.Errorf("%q can be reached from other machines: listen on a loopback address such as 127.0.0.1, or name the https address of the proxy in front with --base-url", addr)
	}
	return nil
}

// hostList is the exact list of Host values that are ours. Whatever name a foreign page has
// bound to this machine's address is not on it (contract 8.1).
type hostList map[string]struct{}

func newHostList(addr string, more ...string) *hostList {
	list := hostList{}
	for _, name := range more {
		list[name] = struct{}{}
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return &list
	}
	for _, name := range []string{"127.0.0.1", "localhost", "::1", "stint.localhost", host} {
		if ip := net.ParseIP(name); name == "" || ip != nil && ip.IsUnspecified() {
			continue
		}
		list[net.JoinHostPort(name, port)] = struct{}{}
		if port == "80" {
			list[strings.TrimSuffix(net.JoinHostPort(name, port), ":80")] = struct{}{}
		}
	}
	return &list
}

func (l *hostList) has(host string) bool {
	if _, ok := (*l)[host]; ok {
		return true
	}
	_, ok := (*l)[strings.ToLower(host)]
	return ok
}

// checkOrigin refuses what no browser page and no program of ours would send: a foreign Host,
// and a write that a page of another origin caused.
func (s *Server) checkOrigin(r *http.Request) error {
	if !s.hosts.Load().has(r.Host) {
		return api.Refuse(api.CodeMisdirected, "This server does not answer for that host name. Use the address that it printed when it started.")
	}
	if isSignIn(r) {
		return nil
	}
	if s.origins.Check(r) != nil {
		return errCrossOrigin
	}
	return nil
}

var errCrossOrigin = api.Refuse(api.CodeCrossOrigin, "A page of another origin may not change anything here.")

// sameOrigin reports whether the browser says that one of our own pages made the request. If
// the client says nothing it isn't assumed: a cookie may then not authenticate a write.
func (s *Server) sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	return r.Header.Get("Origin") == s.origin(r)
}

// safe reports whether the method changes nothing.
func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}
