package engine_test

import (
	"strings"
	"testing"
	"time"

	"stint/account"
	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// withRole gives a member another role and answers how they act from then on.
func withRole(t *testing.T, w *enginetest.Fixture, who account.Identity, role api.Role) engine.Caller {
	t.Helper()
	if _, err := w.SetRole(t.Context(), w.Owner, who.UserID, role); err != nil {
		t.Fatal(err)
	}
	in, err := w.In(t.Context(), who, account.DefaultWorkspace)
	if err != nil || in.Role != role {
		t.Fatalf("acts as %s: %v", in.Role, err)
	}
	return in
}

// agentBy makes a local agent that runs as who makes it, every minute.
func agentBy(t *testing.T, w *enginetest.Fixture, by engine.Caller, slug string) api.Agent {
	t.Helper()
	in := engine.DefaultConfig().DefaultAgent()
	in.Slug, in.Run.Command, in.Schedule = slug, []string{"true"}, "* * * * *"
	a, err := w.CreateAgent(t.Context(), by, in)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// slotsFired counts an agent's slots that made a session, whosever it is.
func slotsFired(w *enginetest.Fixture, a api.Agent) (n int) {
	for _, v := range w.Verdicts(a.ID) {
		if v.Verdict == api.SlotFired {
			n++
		}
	}
	return n
}

// Somebody who becomes a viewer leaves nothing behind that runs for them alone and that
// nobody could see or end; as a member they keep it.
func TestSetRole_AViewersLocalSessionsEndAndTheirAgentsPause(t *testing.T) {
	w, _ := withOwner(t)
	who, ben := joined(t, w, api.Admin, "ben")
	a := agentBy(t, w, ben, "bens")
	cloud := w.Agent(func(in *api.AgentInput) { in.Mode = api.Cloud })
	shared, _, err := w.CreateSession(t.Context(), ben, cloud.Slug, api.SessionInput{}, engine.Idempotency{})
	if err != nil {
		t.Fatal(err)
	}
	w.Advance(time.Minute)
	own, err := w.Sessions(t.Context(), ben, api.SessionFilter{Agent: a.Slug}, api.Page{})
	if err != nil || len(own.Items) != 1 {
		t.Fatalf("their agent made %d sessions: %v", len(own.Items), err)
	}
	open := own.Items[0].ID
	ben = withRole(t, w, who, api.Member)
	if s, err := w.Session(t.Context(), ben, open); err != nil || s.Status.Terminal() {
		t.Fatalf("as a member's it is %s: %v", s.Status, err)
	}
	ben = withRole(t, w, who, api.Viewer)
	s, err := w.Session(t.Context(), ben, open)
	if err != nil || s.Status != api.Cancelled || s.Error.Code != "role_changed" || !strings.Contains(s.Error.Message, "may no longer run agents") {
		t.Errorf("as a viewer's it is %s, %+v: %v", s.Status, s.Error, err)
	}
	w.Want(shared.ID, api.Queued) // others see it and end it
	n := slotsFired(w, a)
	w.Advance(5 * time.Minute)
	got, err := w.Engine.Agent(t.Context(), w.Owner, a.Slug)
	if err != nil || !got.Paused || !strings.Contains(got.PausedReason, "may no longer run agents") || slotsFired(w, a) != n {
		t.Errorf("their agent is paused %v (%s) and made %d sessions: %v", got.Paused, got.PausedReason, slotsFired(w, a)-n, err)
	}
}

// An agent that runs as somebody who may run nothing here stays paused until it
// runs as somebody else; what else is set of it can be changed meanwhile.
func TestEditAgent_CannotResumeRunningAsSomebodyWithoutTheRight(t *testing.T) {
	for _, end := range []struct {
		what string
		do   func(w *enginetest.Fixture, who account.Identity) error
	}{
		{"left", func(w *enginetest.Fixture, who account.Identity) error {
			_, err := w.RemoveMember(w.Context(), w.Owner, who.UserID)
			return err
		}},
		{"is a viewer", func(w *enginetest.Fixture, who account.Identity) error {
			_, err := w.SetRole(w.Context(), w.Owner, who.UserID, api.Viewer)
			return err
		}},
	} {
		w, _ := withOwner(t)
		who, ben := joined(t, w, api.Admin, "ben")
		a := agentBy(t, w, ben, "bens")
		if err := end.do(w, who); err != nil {
			t.Fatal(err)
		}
		edit := func(change func(in *api.AgentInput)) error {
			_, err := w.EditAgent(t.Context(), w.Owner, a.Slug, func(in *api.AgentInput) error { change(in); return nil })
			return err
		}
		if err := edit(func(in *api.AgentInput) { in.Schedule = "*/2 * * * *" }); err != nil {
			t.Errorf("%s: the paused agent can't be changed: %v", end.what, err)
		}
		_, _, err := w.ResumeAgent(t.Context(), w.Owner, a.Slug)
		if got := fields(t, err); got != "runsAsUserId" {
			t.Errorf("%s: the resume is refused for %q", end.what, got)
		}
		w.Advance(5 * time.Minute)
		if n := slotsFired(w, a); n != 0 {
			t.Errorf("%s: %d sessions were made", end.what, n)
		}
		if err := edit(func(in *api.AgentInput) { in.RunsAsUserID, in.Paused = w.Owner.UserID, false }); err != nil {
			t.Fatalf("%s: it can't be taken over: %v", end.what, err)
		}
		w.Advance(2 * time.Minute)
		if all := w.All(a.ID); len(all) != 1 || all[0].OwnerUserID != w.Owner.UserID {
			t.Errorf("%s: taken over, it made %+v", end.what, all)
		}
	}
}

// An address that starts a local agent needs somebody as whom it runs, whichever
// edit would take them away.
func TestEditAgent_AnOpenTriggerURLNeedsSomebodyToRunAs(t *testing.T) {
	w, _ := withOwner(t)
	a := w.Agent()
	cloud := w.Agent(func(in *api.AgentInput) { in.Mode = api.Cloud })
	for _, a := range []api.Agent{a, cloud} {
		opened, err := w.OpenTriggerURL(t.Context(), w.Owner, a.Slug, api.TriggerURLInput{})
		if err != nil {
			t.Fatal(err)
		}
		edit := func() error {
			_, err := w.EditAgent(t.Context(), w.Owner, a.Slug, func(in *api.AgentInput) error { in.Mode, in.RunsAsUserID = api.Local, 0; return nil })
			return err
		}
		if got := fields(t, edit()); got != "runsAsUserId" {
			t.Errorf("the edit of a %s agent is refused for %q", a.Mode, got)
		}
		if err := w.CloseTriggerURL(t.Context(), w.Owner, a.Slug, opened.ID); err != nil {
			t.Fatal(err)
		}
		if err := edit(); err != nil {
			t.Errorf("the address is closed: %v", err)
		}
	}
}

// calls says how a call to an address is answered, in both of its steps.
func calls(t *testing.T, w *enginetest.Fixture, u api.TriggerURL, message string) error {
	t.Helper()
	_, byPath := w.TriggerKeyOf(t.Context(), strings.TrimPrefix(u.Path, "/hooks/"))
	_, _, byID := w.Trigger(t.Context(), u.ID, message, []byte(`{}`), "")
	if api.CodeOf(byPath) != api.CodeOf(byID) {
		t.Fatalf("the path is answered %v, the call %v", byPath, byID)
	}
	return byID
}

// An address is good while its maker could open it: it ends, and comes back, with
// their right, and is answered then as one that never was.
func TestTriggerURL_IsGoodWhileItsMakerMayOpenIt(t *testing.T) {
	w, _ := withOwner(t)
	who, ben := joined(t, w, api.Admin, "ben")
	local := agentBy(t, w, ben, "bens")
	cloud := w.Agent(func(in *api.AgentInput) { in.Mode = api.Cloud })
	open := func(a api.Agent) api.TriggerURL {
		t.Helper()
		u, err := w.OpenTriggerURL(t.Context(), ben, a.Slug, api.TriggerURLInput{})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	ofLocal, ofCloud := open(local), open(cloud)
	works := func(when string, u api.TriggerURL, want bool) {
		t.Helper()
		err := calls(t, w, u, when)
		if want && err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if !want {
			refusedWith(t, err, api.CodeNotFound)
		}
	}
	works("as an admin", ofLocal, true)
	works("as an admin, cloud", ofCloud, true)
	ben = withRole(t, w, who, api.Member)
	works("as a member", ofLocal, true)
	works("as a member, cloud", ofCloud, false)
	ben = withRole(t, w, who, api.Viewer)
	works("as a viewer", ofLocal, false)
	ben = withRole(t, w, who, api.Admin)
	works("as an admin again", ofLocal, true)
	works("as an admin again, cloud", ofCloud, true)
	if _, err := w.EditAgent(t.Context(), w.Owner, local.Slug, func(in *api.AgentInput) error { in.RunsAsUserID = w.Owner.UserID; return nil }); err != nil {
		t.Fatal(err)
	}
	works("run as another", ofLocal, false)
	for _, s := range w.All(local.ID) {
		if s.OwnerUserID != ben.UserID {
			t.Errorf("session %s is %s's", s.ID, s.OwnerUserID)
		}
	}
}

// An owner who is demoted leaves no way back to what they were.
func TestInvitation_EndsWithItsMakersRight(t *testing.T) {
	w, _ := withOwner(t)
	who, ben := joined(t, w, api.Owner, "ben")
	invited := func() api.Invitation {
		t.Helper()
		i, err := w.Invite(t.Context(), ben, api.InvitationInput{Role: api.Owner})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	join := func(i api.Invitation, login string) error {
		_, _, err := w.Join(t.Context(), i.Code, api.LoginInput{Login: login, Password: rightPassword}, from("192.0.2.9"))
		return err
	}
	if err := join(invited(), "carl"); err != nil {
		t.Fatal(err)
	}
	before := invited()
	withRole(t, w, who, api.Admin)
	refusedWith(t, join(before, "dora"), api.CodeUnauthenticated)
	if open, err := w.Invitations(t.Context(), w.Owner, api.Page{}); err != nil || len(open.Items) != 0 {
		t.Errorf("open are %+v: %v", open.Items, err)
	}
	_, err := w.JoinAs(t.Context(), w.User("emma"), before.Code)
	refusedWith(t, err, api.CodeUnauthenticated)
	ben = withRole(t, w, who, api.Owner)
	refusedWith(t, join(before, "dora"), api.CodeUnauthenticated) // it was revoked for good
	if err := join(invited(), "dora"); err != nil {
		t.Error(err)
	}
}

// Nobody who may not trigger a cloud agent can start it indirectly: not by a retry,
// nor by a message to an ended session, nor by one that was left over.
func TestCloud_OnlyThoseWhoMayTriggerItStartIt(t *testing.T) {
	w, _ := withOwner(t)
	who, ben := joined(t, w, api.Admin, "ben")
	cloud := func(in *api.AgentInput) { in.Mode = api.Cloud }
	a := w.Agent(conversing, cloud)
	k := w.Worker(a, conversingWorker, func(in *api.WorkerInput) { in.Mode = api.Cloud })
	of := func() api.Session {
		t.Helper()
		s, _, err := w.CreateSession(t.Context(), ben, a.Slug, api.SessionInput{Prompt: new("x")}, engine.Idempotency{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	ended, running := of(), of()
	if _, err := k.Complete(k.Claim(ended.ID), ""); err != nil {
		t.Fatal(err)
	}
	c := k.Claim(running.ID)
	say := func(by engine.Caller, id api.SessionID) error {
		_, err := w.PostMessage(t.Context(), by, id, api.MessageInput{Text: "go on"})
		return err
	}
	admin := ben
	ben = withRole(t, w, who, api.Member)
	_, err := w.RetrySession(t.Context(), ben, ended.ID)
	refusedWith(t, err, api.CodeForbidden)
	refusedWith(t, say(ben, ended.ID), api.CodeForbidden)
	if err := say(ben, running.ID); err != nil {
		t.Fatalf("a message to what runs: %v", err)
	}
	if _, err := k.Complete(c, ""); err != nil {
		t.Fatal(err)
	}
	if n := len(w.All(a.ID)); n != 2 {
		t.Fatalf("there are %d sessions, not the two of before", n)
	}
	if _, err := w.RetrySession(t.Context(), withRole(t, w, who, api.Admin), ended.ID); err != nil {
		t.Error(err)
	}
	if err := say(admin, running.ID); err != nil {
		t.Error(err)
	}

	// A member's own local session doesn't become a cloud one either.
	ben = withRole(t, w, who, api.Member)
	b := w.Agent()
	s, _, err := w.CreateSession(t.Context(), ben, b.Slug, api.SessionInput{}, engine.Idempotency{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.CancelSession(t.Context(), ben, s.ID, api.CancelInput{}); err != nil {
		t.Fatal(err)
	}
	again, err := w.RetrySession(t.Context(), ben, s.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.CancelSession(t.Context(), ben, again.ID, api.CancelInput{}); err != nil {
		t.Fatal(err)
	}
	w.Edit(b.ID, cloud)
	_, err = w.RetrySession(t.Context(), ben, again.ID)
	refusedWith(t, err, api.CodeForbidden)
}

// Two runs of one agent may use the same key each: what one started is nothing of
// the other's.
func TestRun_HasIdempotencyKeysOfItsOwn(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 2 })
	child := w.Agent()
	k := w.Worker(a, func(in *api.WorkerInput) { in.MaxConcurrent = 2 })
	key := engine.Idempotency{Key: "nightly", Route: "r", Body: []byte("x")}
	seen := map[api.SessionID]bool{}
	for range 2 {
		by, err := acts(t, w, k.Claim(w.New(a).ID).RunToken)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			made, replayed, err := w.CreateSession(t.Context(), by, child.Slug, api.SessionInput{}, key)
			if err != nil || replayed != (i == 1) || seen[made.ID] != (i == 1) {
				t.Errorf("start %d made %s, replayed %v: %v", i, made.ID, replayed, err)
			}
			seen[made.ID] = true
		}
	}
	if mine, replayed, err := w.CreateSession(t.Context(), w.Owner, child.Slug, api.SessionInput{}, key); err != nil || replayed || seen[mine.ID] {
		t.Errorf("their person's own request made %s, replayed %v: %v", mine.ID, replayed, err)
	}
}
