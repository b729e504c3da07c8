package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/oauth2"
	"golang.org/x/sys/unix"

	"stint/api"
	"stint/worker/places"
)

// localContext is the name of the coordinator on the data directory, which needs
// no signing in.
const localContext = "local"

// credential is one server that somebody signed in to on this machine.
type credential struct {
	URL    string `json:"url"`    // as commands call it
	Issuer string `json:"issuer"` // as it was signed in to
	User   string `json:"user"`   // the name at the time

	Access    string    `json:"accessToken"`
	Refresh   string    `json:"refreshToken"`
	ExpiresAt time.Time `json:"expiresAt"` // of the access token, by this machine's clock
	RenewAt   time.Time `json:"renewAt"`   // when it is to be exchanged for the next
}

// with returns the credential with the tokens obtained at an instant.
func (a credential) with(t *oauth2.Token, now time.Time) credential {
	a.Access, a.Refresh, a.ExpiresAt = t.AccessToken, t.RefreshToken, t.Expiry
	a.RenewAt = t.Expiry.Add(-min(time.Minute, t.Expiry.Sub(now)/3))
	return a
}

// credentials is the content of the credentials file.
type credentials struct {
	Current  string                `json:"current,omitzero"` // the context that commands use; "" = local
	Contexts map[string]credential `json:"contexts"`
}

func (c credentials) names() []string {
	var out []string
	for name := range c.Contexts {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// vault is the file of credentials. Processes that change it take its lock; it is replaced
// whole, so that readers need none.
type vault string

func newVault() vault { return vault(filepath.Join(places.State(), "credentials.json")) }

func (v vault) read() (credentials, error) {
	out := credentials{Contexts: map[string]credential{}}
	text, err := os.ReadFile(string(v))
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return out, fmt.Errorf("read the sign-ins in %s: %s", v, reason(err))
	}
	if out.Contexts == nil {
		out.Contexts = map[string]credential{}
	}
	return out, nil
}

// change lets do change the stored credentials, alone among all processes.
func (v vault) change(ctx context.Context, do func(*credentials) error) error {
	if err := os.MkdirAll(filepath.Dir(string(v)), 0o700); err != nil {
		return fmt.Errorf("make the folder of the sign-ins: %w", err)
	}
	lock, err := os.OpenFile(string(v)+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the lock of the sign-ins: %w", err)
	}
	defer func() { _ = lock.Close() }()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := flock(lock, unix.LOCK_EX)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("lock the sign-ins: %w", err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	stored, err := v.read()
	if err != nil {
		return err
	}
	if err := do(&stored); err != nil {
		return err
	}
	text, err := json.Marshal(stored, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("write the sign-ins: %w", err)
	}
	if err := writePrivate(string(v), append(text, '\n')); err != nil {
		return fmt.Errorf("write the sign-ins: %w", err)
	}
	return nil
}

// bearer provides the access token of a context and refreshes it before its end. However many
// processes share the file, one of them refreshes and the others read the result.
type bearer struct {
	vault vault
	name  string
	now   func() time.Time
	agent string

	mu   sync.Mutex
	last credential // guarded by mu
}

// token returns an access token that is good for a while.
func (b *bearer) token(ctx context.Context) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fresh() {
		return b.last.Access, nil
	}
	err := b.vault.change(ctx, func(stored *credentials) error {
		var ok bool
		if b.last, ok = stored.Contexts[b.name]; !ok {
			return api.Refuse(api.CodeUnauthenticated, "You have signed out: run stint login.")
		}
		if b.fresh() {
			return nil // another process was faster
		}
		next, err := b.refreshed(ctx, b.last)
		if err != nil {
			return err
		}
		b.last, stored.Contexts[b.name] = next, next
		return nil
	})
	if err != nil && (!api.Retriable(err) || !b.now().Before(b.last.ExpiresAt)) {
		return "", err
	}
	return b.last.Access, nil
}

// fresh reports whether the access token needs no refreshing yet.
func (b *bearer) fresh() bool { return b.last.Access != "" && b.now().Before(b.last.RenewAt) }

// refreshed exchanges the refresh token of an account.
func (b *bearer) refreshed(ctx context.Context, a credential) (credential, error) {
	client, err := api.NewClient(api.ClientConfig{URL: a.Issuer, Agent: b.agent})
	if err != nil {
		return a, err
	}
	server, err := client.AuthServer(ctx)
	if err != nil {
		return a, err
	}
	config := oauthConfig(server)
	got, err := patiently(ctx, refreshPatience, func() {}, func() (*oauth2.Token, error) {
		return config.TokenSource(oauthContext(ctx, client, b.agent), &oauth2.Token{RefreshToken: a.Refresh}).Token()
	})
	if err != nil {
		return a, tokenFailure(err)
	}
	return a.with(got, b.now()), nil
}

// tokenFailure distinguishes a sign-in that has ended from a server that can't be reached.
func tokenFailure(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.ErrorCode == "invalid_grant" {
		return api.Refuse(api.CodeUnauthenticated, "The sign-in has ended or was ended elsewhere: run stint login.")
	}
	if errors.As(err, &refused) && refused.ErrorCode != "" && !unanswered(err) {
		return fmt.Errorf("the server refuses: %s: %s", refused.ErrorCode, refused.ErrorDescription)
	}
	return &api.Unanswered{Op: "POST /oauth/token", Err: err}
}

// sameServer reports whether two URLs name one server.
func sameServer(a, b string) bool {
	return strings.EqualFold(strings.TrimRight(a, "/"), strings.TrimRight(b, "/"))
}
