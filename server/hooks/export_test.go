package hooks

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"net"
	"net/http"
	"strings"

	"stint/engine"
)

// For the tests of this folder.
var (
	Dialer    = newDialer
	IsRefused = refused
	Sign      = sign
)

// SecretBytes reads a secret as the specification writes it.
func SecretBytes(text string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
}

// Known reports whether something sends to a kind of channel.
func Known(scheme string) bool { return ways[scheme] != nil }

// TryOnce makes one try and notes nothing.
func TryOnce(ctx context.Context, s *Sender, t engine.DeliveryAttempt) engine.Sent {
	return s.send(ctx, t)
}

// TrustAnything makes a sender take the certificates of the tests' receivers.
func TrustAnything(s *Sender) {
	s.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // a test's receiver
}

// ConnectTo makes a sender connect to an address, whatever host it calls.
func ConnectTo(s *Sender, address string) {
	TrustAnything(s)
	s.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
}
