package hooks

import (
	"encoding/base64"
	"strings"
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
