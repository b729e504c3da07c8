package engine_test

import (
	"encoding/hex"
	"reflect"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
)

func finishes() (under api.UnderClaim, usage *api.Usage, at api.Time) {
	under = api.UnderClaim{ClaimID: api.ClaimID{Key: 7, Secret: [16]byte{1, 2, 3}}, InstanceID: "any"}
	usage = &api.Usage{InputTokens: 1, OutputTokens: 2, CostMicros: 3, Turns: 4}
	return under, usage, api.Time{Time: time.Date(2026, 11, 29, 1, 2, 3, 456_789_000, time.UTC)}
}

// The sums were stored by releases that hashed the requests' JSON: a worker may repeat a finish
// to a coordinator that was upgraded in between.
func TestFinish_RepeatedAfterAnUpgradeIsKnown(t *testing.T) {
	under, usage, at := finishes()
	complete := func(in api.CompleteRequest) func() ([]byte, error) {
		return func() ([]byte, error) { return engine.CompleteHash(in) }
	}
	fail := func(in api.FailRequest) func() ([]byte, error) {
		return func() ([]byte, error) { return engine.FailHash(in) }
	}
	release := func(in api.ReleaseRequest) func() ([]byte, error) {
		return func() ([]byte, error) { return engine.ReleaseHash(in) }
	}
	for _, c := range []struct {
		stored string
		hash   func() ([]byte, error)
	}{
		{"9adcaf2ad3def521c431babd573a66b5", complete(api.CompleteRequest{UnderClaim: under, Result: "a <b>\n\u2028é", Outcome: "success", Usage: usage})},
		{"b1206b94829255afcde651623bbd2581", complete(api.CompleteRequest{UnderClaim: under})},
		{"5181474868856d20aab15966db9632df", fail(api.FailRequest{UnderClaim: under, Code: "C", Message: "m & n", Result: "r", Usage: usage})},
		{"39c6a74fbbf5b502fd6d476840df0162", fail(api.FailRequest{UnderClaim: under, Code: "C"})},
		{"c8c02307da016ab85a68582777fc337b", release(api.ReleaseRequest{UnderClaim: under, Reason: "r", NotBefore: at, Named: true, Park: true})},
		{"c29d65102a41e9431b79b15519be2f99", release(api.ReleaseRequest{UnderClaim: under})},
	} {
		sum, err := c.hash()
		if got := hex.EncodeToString(sum); err != nil || got != c.stored {
			t.Errorf("hash %s, %v; stored %s", got, err, c.stored)
		}
	}
}

// Each field of a finish makes it another one, except what says who sends it and what it asks
// for besides.
func TestFinish_EachFieldCounts(t *testing.T) {
	under, usage, at := finishes()
	eachFieldCounts(t, engine.CompleteHash, api.CompleteRequest{UnderClaim: under, Result: "r", Outcome: "o", Usage: usage})
	eachFieldCounts(t, engine.FailHash, api.FailRequest{UnderClaim: under, Code: "c", Message: "m", Result: "r", Usage: usage})
	eachFieldCounts(t, engine.ReleaseHash, api.ReleaseRequest{UnderClaim: under, Reason: "r", NotBefore: at, Named: true, Park: true})
	eachFieldCounts(t, func(u api.Usage) ([]byte, error) { return engine.CompleteHash(api.CompleteRequest{Usage: &u}) }, *usage)
}

// eachFieldCounts compares the hash of a body that has all its fields set with those of bodies
// in which one of them isn't.
func eachFieldCounts[B any](t *testing.T, hash func(B) ([]byte, error), whole B) {
	t.Helper()
	want, err := hash(whole)
	if err != nil {
		t.Fatal(err)
	}
	for i := range reflect.TypeFor[B]().NumField() {
		less := whole
		field := reflect.ValueOf(&less).Elem().Field(i)
		name := reflect.TypeFor[B]().Name() + "." + reflect.TypeFor[B]().Field(i).Name
		counts := true
		if next, ok := field.Interface().(*api.ClaimNextOf); ok && next == nil {
			field.Set(reflect.ValueOf(&api.ClaimNextOf{RequestID: "x"}))
			counts = false
		} else if field.IsZero() {
			t.Errorf("%s is not set", name)
		} else {
			field.SetZero()
		}
		got, err := hash(less)
		if err != nil {
			t.Fatal(err)
		}
		if other := string(got) != string(want); other != counts {
			t.Errorf("%s changes the hash: %v, want %v", name, other, counts)
		}
	}
}
