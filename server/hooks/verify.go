package hooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"stint/api"
	"stint/engine"
)

// ErrSignature says that the caller doesn't know the secret.
var ErrSignature = errors.New("the signature is missing or wrong")

// Verify checks the signature of a call to a trigger URL and returns the id of
// its message. A message by the Standard Webhooks specification must not be
// older or newer than five minutes. Error: [ErrSignature].
func Verify(key engine.TriggerKey, h http.Header, body []byte) (message string, err error) {
	switch key.Scheme {
	case api.SignedGitHub:
		return verifyGitHub(key.Secret, h, body)
	default:
		wh, err := standardwebhooks.NewWebhookRaw(key.Secret)
		if err != nil {
			return "", fmt.Errorf("use the secret: %w", err)
		}
		if err := wh.Verify(body, h); err != nil {
			return "", fmt.Errorf("%w: %w", ErrSignature, err)
		}
		return checkMessage(h.Get(standardwebhooks.HeaderWebhookID))
	}
}

// verifyGitHub checks what GitHub sends: X-Hub-Signature-256 over the body.
func verifyGitHub(secret []byte, h http.Header, body []byte) (string, error) {
	sent, ok := strings.CutPrefix(h.Get("X-Hub-Signature-256"), "sha256=")
	if !ok {
		return "", ErrSignature
	}
	got, err := hex.DecodeString(sent)
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	if err != nil || !hmac.Equal(got, mac.Sum(nil)) {
		return "", ErrSignature
	}
	return checkMessage(h.Get("X-GitHub-Delivery"))
}

func checkMessage(id string) (string, error) {
	if id == "" || len(id) > 255 {
		return "", fmt.Errorf("%w: the message has no id", ErrSignature)
	}
	return id, nil
}
