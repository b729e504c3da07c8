package server

import (
	"context"
	"net"
	"net/url"
	"runtime"

	"stint/api"
)

// browserHost is what browsers call a server on this machine. They send cookies to every port
// of a host, so the dashboard has its own host name (contract 8.1). All links that people are
// shown use it: a sign-in under one name doesn't count under another.
const browserHost = "stint.localhost"

// ForBrowsers is a server's address as people should be shown it: on this machine with the
// browser host name, elsewhere unchanged.
func ForBrowsers(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || !api.IsThisMachine(u.Hostname()) || !browserResolves(browserHost) {
		return address
	}
	u.Host = browserHost + portOf(u)
	return u.String()
}

func portOf(u *url.URL) string {
	if u.Port() == "" {
		return ""
	}
	return ":" + u.Port()
}

// browserResolves reports whether browsers on this system find a name below localhost. They do
// by themselves, except Safari, which asks the system.
func browserResolves(host string) bool {
	if runtime.GOOS != "darwin" {
		return true
	}
	_, err := net.DefaultResolver.LookupHost(context.Background(), host)
	return err == nil
}
