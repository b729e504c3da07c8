package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"stint/account"
	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

const rightPassword = "correct horse battery"

func from(address string) account.From {
	return account.From{Label: "Firefox on Linux", Address: address}
}

// withOwner is a fixture whose owner signs in as ann.
func withOwner(t *testing.T) (*enginetest.Fixture, account.Identity) {
	t.Helper()
	w := enginetest.New(t)
	who, err := w.Accounts.Owner(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.SetLogin(t.Context(), who, api.LoginInput{Login: "ann", Password: rightPassword}, from("127.0.0.1")); err != nil {
		t.Fatal(err)
	}
	return w, who
}

// joined makes a new member.
func joined(t *testing.T, w *enginetest.Fixture, role api.Role, login string) (account.Identity, engine.Caller) {
	t.Helper()
	i, err := w.Invite(t.Context(), w.Owner, api.InvitationInput{Role: role})
	if err != nil {
		t.Fatal(err)
	}
	cookie, _, err := w.Join(t.Context(), i.Code, api.LoginInput{Login: login, Password: rightPassword}, from("192.0.2.9"))
	if err != nil {
		t.Fatal(err)
	}
	who, err := w.Authenticate(t.Context(), cookie)
	if err != nil {
		t.Fatal(err)
	}
	in, err := w.In(t.Context(), who, account.DefaultWorkspace)
	if err != nil || in.Role != role {
		t.Fatalf("entered as %s: %v", in.Role, err)
	}
	return who, in
}

func refusedWith(t *testing.T, err error, code api.Code) *api.Error {
	t.Helper()
	var refused *api.Error
	if !errors.As(err, &refused) || refused.Code != code {
		t.Fatalf("got %v, not %s", err, code)
	}
	return refused
}

// However long somebody guesses from one address, a hundred guesses an hour are checked and no
// more; the owner can sign in from elsewhere all the while.
func TestGuesses_AreBoundedByTheHour(t *testing.T) {
	w, _ := withOwner(t)
	ctx := t.Context()
	checked, refused := 0, 0
	for range 59 {
		for range 3 {
			_, _, err := w.SignInWithPassword(ctx, "ann", "", from("203.0.113.5"))
			switch code := api.CodeOf(err); code {
			case api.CodeUnauthenticated:
				checked++
			case api.CodeTooMany:
				refused++
			default:
				t.Fatal(err)
			}
		}
		w.Clock.Step(time.Minute)
	}
	if checked != 50 || refused != 59*3-50 {
		t.Errorf("%d guesses were checked and %d refused", checked, refused)
	}
	if _, _, err := w.SignInWithPassword(ctx, "ann", rightPassword, from("198.51.100.1")); err != nil {
		t.Errorf("the owner is locked out: %v", err)
	}
	// Many addresses of one network are one.
	for i := range 12 {
		want := api.CodeUnauthenticated
		if i >= 10 {
			want = api.CodeTooMany
		}
		_, _, err := w.SignInWithPassword(ctx, "ann", "x", from(fmt.Sprintf("2001:db8::ffff:%x", i)))
		if api.CodeOf(err) != want {
			t.Errorf("guess %d from one network: %v", i, err)
		}
	}
	w.Clock.Step(2 * time.Hour)
	if _, _, err := w.SignInWithPassword(ctx, "ann", rightPassword, from("203.0.113.5")); err != nil {
		t.Errorf("two hours later: %v", err)
	}
}

// However many addresses guess, an account's password is tried a hundred times an hour;
// somebody who signed in from a network before still gets in from there.
func TestGuesses_AreBoundedForAnAccountWhateverTheirAddress(t *testing.T) {
	w, _ := withOwner(t)
	ctx := t.Context()
	const home = "198.51.100.1"
	if _, _, err := w.SignInWithPassword(ctx, "ann", rightPassword, from(home)); err != nil {
		t.Fatal(err)
	}
	checked := 1 // that was one of a stranger's
	for i := range 130 {
		_, _, err := w.SignInWithPassword(ctx, "ann", "", from(fmt.Sprintf("203.0.113.%d", i)))
		switch api.CodeOf(err) {
		case api.CodeUnauthenticated:
			checked++
		case api.CodeTooMany:
		default:
			t.Fatal(err)
		}
	}
	if checked != 100 {
		t.Errorf("%d guesses from as many addresses were checked", checked)
	}
	_, _, err := w.SignInWithPassword(ctx, "ann", rightPassword, from("192.0.2.77"))
	if refused := refusedWith(t, err, api.CodeTooMany); refused.RetryIn <= 0 || refused.RetryIn > 3601 {
		t.Errorf("a stranger has to wait %d s", refused.RetryIn)
	}
	if _, _, err := w.SignInWithPassword(ctx, "ann", rightPassword, from(home)); err != nil {
		t.Errorf("the owner is locked out at home: %v", err)
	}
	w.Clock.Step(91 * 24 * time.Hour)
	if _, _, err := w.SignInWithPassword(ctx, "ann", rightPassword, from("192.0.2.77")); err != nil {
		t.Errorf("when the attack is over: %v", err)
	}
}

// An unknown name costs the guesser a password's hash just like a known one. What is compared
// is the fastest of many tries: without the hash it would be a thousandth, whatever else the
// machine does.
func TestGuesses_TakeAsLongForUnknownNames(t *testing.T) {
	w, _ := withOwner(t)
	least := func(login string) time.Duration {
		var took []time.Duration
		for range 10 {
			w.Clock.Step(time.Minute)
			begun := time.Now()
			if _, _, err := w.SignInWithPassword(t.Context(), login, "wrong password", from("203.0.113.5")); api.CodeOf(err) != api.CodeUnauthenticated {
				t.Fatal(err)
			}
			took = append(took, time.Since(begun))
		}
		return slices.Min(took)
	}
	known, unknown := least("ann"), least("nobody")
	if unknown < known/4 || known < unknown/4 {
		t.Errorf("known names take %v, unknown ones %v", known, unknown)
	}
}

func TestCookie_EndsWhenIdleAndInAnyCase(t *testing.T) {
	w, _ := withOwner(t)
	cookie, expires, err := w.SignInWithPassword(t.Context(), "ann", rightPassword, from("127.0.0.1"))
	if err != nil || expires.Sub(w.Clock.Now()) != 30*24*time.Hour {
		t.Fatalf("%v, ends %v", err, expires)
	}
	for range 4 {
		w.Clock.Step(6 * 24 * time.Hour)
		if _, err := w.Authenticate(t.Context(), cookie); err != nil {
			t.Fatalf("used every six days: %v", err)
		}
	}
	w.Clock.Step(6*24*time.Hour + time.Second)
	_, err = w.Authenticate(t.Context(), cookie)
	refusedWith(t, err, api.CodeUnauthenticated) // thirty days are over
	cookie, _, err = w.SignInWithPassword(t.Context(), "ann", rightPassword, from("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	w.Clock.Step(7 * 24 * time.Hour)
	_, err = w.Authenticate(t.Context(), cookie)
	refusedWith(t, err, api.CodeUnauthenticated)
}

// Removal is one step: what the member ran is cancelled, their worker and key are gone, the
// agent that ran as them is paused, and Check finds nothing wrong at the end.
func TestRemoveMember_LeavesNothingBehind(t *testing.T) {
	w, _ := withOwner(t)
	ctx := t.Context()
	who, ben := joined(t, w, api.Admin, "ben")
	in := engine.DefaultConfig().DefaultAgent()
	in.Slug, in.Run.Command, in.Schedule, in.MaxConcurrent = "bens", []string{"true"}, "* * * * *", 3
	a, err := w.CreateAgent(ctx, ben, in)
	if err != nil {
		t.Fatal(err)
	}
	reg, err := w.RegisterWorker(ctx, ben, a.Slug, api.WorkerInput{Name: "w", InstanceID: "i", MaxConcurrent: 3})
	if err != nil {
		t.Fatal(err)
	}
	running, _, err := w.CreateSession(ctx, ben, a.Slug, api.SessionInput{Prompt: new("x")}, engine.Idempotency{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Claim(ctx, ben, reg.Worker.ID, running.ID, api.ClaimRequest{InstanceID: "i"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.CreateSession(ctx, ben, a.Slug, api.SessionInput{After: running.ID}, engine.Idempotency{}); err != nil {
		t.Fatal(err)
	}
	key, err := w.CreateKey(ctx, ben, api.KeyInput{Name: "ci", Scopes: []api.Scope{api.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := w.OpenTriggerURL(ctx, ben, a.Slug, api.TriggerURLInput{})
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(opened.Path, "/hooks/")
	if _, err := w.TriggerKeyOf(ctx, address); err != nil {
		t.Fatalf("the address %s can't be used: %v", opened.Path, err)
	}
	epoch := w.Epoch()
	got, err := w.RemoveMember(ctx, w.Owner, who.UserID)
	if err != nil || got.Workers != 1 || got.Agents != 1 || got.Sessions < 1 {
		t.Fatalf("removed %+v: %v", got, err)
	}
	if w.Epoch() == epoch {
		t.Error("kept answers about rights are still thought good")
	}
	_, err = w.Authenticate(ctx, key.Key)
	refusedWith(t, err, api.CodeUnauthenticated)
	_, err = w.TriggerKeyOf(ctx, address)
	refusedWith(t, err, api.CodeNotFound)
	_, err = w.In(ctx, who, account.DefaultWorkspace)
	refusedWith(t, err, api.CodeNotFound)
	after, err := w.Engine.Agent(ctx, w.Owner, a.Slug)
	if err != nil || !after.Paused || !strings.Contains(after.PausedReason, "no longer a member") {
		t.Errorf("the agent that ran as them is %+v: %v", after, err)
	}
	w.Advance(5 * time.Minute)
	if all := w.All(a.ID); len(all) != 0 {
		t.Errorf("the owner sees %d of their local sessions", len(all))
	}
}

func TestLastOwner_Stays(t *testing.T) {
	w, _ := withOwner(t)
	ctx := t.Context()
	_, err := w.SetRole(ctx, w.Owner, w.Owner.UserID, api.Admin)
	refusedWith(t, err, api.CodeLastOwner)
	_, err = w.RemoveMember(ctx, w.Owner, w.Owner.UserID)
	refusedWith(t, err, api.CodeLastOwner)
	second, in := joined(t, w, api.Owner, "cleo")
	if _, err := w.RemoveMember(ctx, w.Owner, w.Owner.UserID); err != nil {
		t.Fatalf("leaving a workspace that has another owner: %v", err)
	}
	owner, err := w.Accounts.Owner(ctx)
	if err != nil || owner.UserID != second.UserID {
		t.Errorf("the owner is %+v: %v", owner, err)
	}
	_, err = w.RemoveMember(ctx, in, second.UserID)
	refusedWith(t, err, api.CodeLastOwner)
}

func TestInvitation_EndsAfterAWeek(t *testing.T) {
	w, _ := withOwner(t)
	i, err := w.Invite(t.Context(), w.Owner, api.InvitationInput{Role: api.Viewer})
	if err != nil || i.ExpiresAt.Sub(w.Clock.Now()) != 7*24*time.Hour {
		t.Fatalf("%+v: %v", i, err)
	}
	w.Clock.Step(7 * 24 * time.Hour)
	_, _, err = w.Join(t.Context(), i.Code, api.LoginInput{Login: "late", Password: rightPassword}, from("192.0.2.1"))
	refusedWith(t, err, api.CodeUnauthenticated)
	list, err := w.Invitations(context.Background(), w.Owner, api.Page{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("open are %v: %v", list.Items, err)
	}
}

func TestKey_LeavesTheCallersScopesAsTheyAre(t *testing.T) {
	w, _ := withOwner(t)
	given := []api.Scope{api.ScopeTrigger, api.ScopeCancel, api.ScopeTrigger}
	k, err := w.CreateKey(t.Context(), w.Owner, api.KeyInput{Name: "k", Scopes: given})
	if err != nil || !slices.Equal(k.Scopes, []api.Scope{api.ScopeCancel, api.ScopeTrigger}) {
		t.Errorf("the key has %v, %v", k.Scopes, err)
	}
	if !slices.Equal(given, []api.Scope{api.ScopeTrigger, api.ScopeCancel, api.ScopeTrigger}) {
		t.Errorf("the caller's list became %v", given)
	}
}

func TestKey_EndsAtItsTime(t *testing.T) {
	w, _ := withOwner(t)
	for _, bad := range []time.Duration{0, -time.Second, 367 * 24 * time.Hour} {
		_, err := w.CreateKey(t.Context(), w.Owner, api.KeyInput{Name: "k", Scopes: api.Scopes, ExpiresAt: api.Time{Time: w.Clock.Now().Add(bad)}})
		refusedWith(t, err, api.CodeInvalid)
	}
	k, err := w.CreateKey(t.Context(), w.Owner, api.KeyInput{Name: "k", Scopes: []api.Scope{api.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	who, err := w.Authenticate(t.Context(), k.Key)
	if err != nil || who.KeyID != k.ID {
		t.Fatalf("%+v: %v", who, err)
	}
	in, err := w.In(t.Context(), who, account.DefaultWorkspace)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.CreateAgent(t.Context(), in, engine.DefaultConfig().DefaultAgent())
	refusedWith(t, err, api.CodeUserTokenRequired)
	_, err = w.RemoveMember(t.Context(), in, in.UserID)
	refusedWith(t, err, api.CodeUserTokenRequired)
	w.Clock.Step(90 * 24 * time.Hour)
	_, err = w.Authenticate(t.Context(), k.Key)
	refusedWith(t, err, api.CodeUnauthenticated)
}
