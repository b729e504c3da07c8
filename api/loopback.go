package api

import (
	"net/netip"
	"strings"
)

// IsThisMachine reports whether a host name or address can only be this machine: an address as
// [IsLoopback] says, localhost, or a name below that (RFC 6761, section 6.3).
func IsThisMachine(host string) bool {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	return IsLoopback(host) || name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// IsLoopback reports whether a host is a loopback address, written as one, an IPv6 one with or
// without its brackets: a name may lead anywhere.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.IsLoopback() && ip.Zone() == ""
}
