package engine_test

import (
	"errors"
	"testing"

	"stint/api"
	"stint/engine"
)

// refusal is the api.Error in err, nil when it holds none.
func refusal(err error) *api.Error {
	var e *api.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// wantCode fails the test unless err is a refusal of that code.
func wantCode(t testing.TB, err error, code api.Code) *api.Error {
	t.Helper()
	e := refusal(err)
	if e == nil || e.Code != code {
		t.Fatalf("got %v, want a refusal %s", err, code)
	}
	return e
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func keyed(key string) engine.Idempotency {
	return engine.Idempotency{Key: key, Route: "create", Body: []byte(key)}
}
