package account

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"

	"stint/api"
)

// The costs of a password's hash: 19 MiB, two passes, one thread.
var passwordCosts = &argon2id.Params{Memory: 19 << 10, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// nobodysPassword is compared with where there is no such user, so that the
// answer takes as long. No password has this hash.
const nobodysPassword = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

const (
	minPassword   = 10  // characters
	maxPersonName = 100 // characters
	maxPassword   = 256 // bytes: the hash takes in each of them
	hashersWait   = 64  // requests that may wait for a hasher's turn
)

// hashers bounds how many passwords are hashed at a time, since each takes 19
// MiB while it lasts; beyond a queue of bounded length nobody waits.
type hashers struct {
	turns   chan struct{}
	waiting atomic.Int64
}

func newHashers() *hashers {
	return &hashers{turns: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)))}
}

// run calls do when its turn has come. Error: too_many_requests when too many wait.
func (h *hashers) run(ctx context.Context, do func() error) error {
	if h.waiting.Add(1) > hashersWait {
		h.waiting.Add(-1)
		return &api.Error{Code: api.CodeTooMany, Detail: "Too many people sign in at this moment.", RetryIn: 2}
	}
	select {
	case h.turns <- struct{}{}:
		h.waiting.Add(-1)
	case <-ctx.Done():
		h.waiting.Add(-1)
		return ctx.Err()
	}
	defer func() { <-h.turns }()
	return do()
}

// hash makes the text that is kept of a password.
func (h *hashers) hash(ctx context.Context, password string) (text string, err error) {
	err = h.run(ctx, func() error {
		text, err = argon2id.CreateHash(password, passwordCosts)
		return err
	})
	return text, err
}

// fits reports whether text was made of password. An empty text fits none and
// takes as long.
func (h *hashers) fits(ctx context.Context, password, text string) (fits bool, err error) {
	if text == "" {
		text = nobodysPassword
	}
	if len(password) > maxPassword {
		password = password[:maxPassword] // no such password was ever set
	}
	err = h.run(ctx, func() error {
		fits, err = argon2id.ComparePasswordAndHash(password, text)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("compare a password: %w", err)
	}
	return fits, nil
}

// checkLogin normalises the name that a person signs in with.
func checkLogin(v *api.Invalid, login *string) {
	*login = strings.ToLower(strings.TrimSpace(*login))
	if n := len(*login); n < 2 || n > 64 {
		v.Add("login", "must have 2 to 64 characters")
		return
	}
	for _, r := range *login {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("._-@+", r) {
			v.Add("login", "may have letters, digits and the characters . _ - @ +")
			return
		}
	}
}

func checkPassword(v *api.Invalid, login, password string) {
	switch n := utf8.RuneCountInString(password); {
	case n < minPassword:
		v.Add("password", fmt.Sprintf("must have at least %d characters", minPassword))
	case len(password) > maxPassword:
		v.Add("password", fmt.Sprintf("has %d bytes; at most %d fit", len(password), maxPassword))
	case strings.EqualFold(password, login):
		v.Add("password", "must not be the name to sign in with")
	case !utf8.ValidString(password):
		v.Add("password", "must be valid text")
	}
}

// CheckPersonName trims what others see of a person.
func CheckPersonName(v *api.Invalid, name *string) {
	*name = strings.TrimSpace(*name)
	if n := utf8.RuneCountInString(*name); n < 1 || n > maxPersonName {
		v.Add("name", fmt.Sprintf("must have 1 to %d characters", maxPersonName))
		return
	}
	v.CheckLine("name", *name)
}
