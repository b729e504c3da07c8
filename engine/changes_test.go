package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"stint/account"
	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// change is a session that worked in a worktree.
type change struct {
	*enginetest.Fixture
	agent api.Agent
	k     *enginetest.Worker
	claim api.Claim
}

func changed(t *testing.T, land api.LandLevel, of ...func(*api.AgentInput)) *change {
	t.Helper()
	return changedIn(enginetest.New(t), land, of...)
}

func changedIn(w *enginetest.Fixture, land api.LandLevel, of ...func(*api.AgentInput)) *change {
	w.Helper()
	c := &change{Fixture: w, agent: w.Agent(of...)}
	c.k = w.Worker(c.agent, func(in *api.WorkerInput) { in.Land, in.Types = land, []api.AgentType{c.agent.Type} })
	c.claim = c.k.Claim(w.New(c.agent).ID)
	return c
}

const onePatch = "@@ -1,2 +1,3 @@\n one\n-two\n+2\n+3\n"

func (c *change) report(snapshot string, files ...string) api.ChangesReport {
	in := api.ChangesReport{
		UnderClaim: c.k.Under(c.claim.ClaimID), Snapshot: snapshot, FileCount: int64(len(files)), Added: 2, Removed: 1, Last: true,
		State: api.ChangesState{
			Place: api.PlaceWorktree, Branch: "stint/x", BaseBranch: "main", Base: "aaaa", Head: "bbbb", Remote: "example.org/x",
			Commits: []api.Commit{{ID: "bbbb", Subject: "Do it"}}, CommitCount: 1, Unpushed: 1,
		},
	}
	for _, f := range files {
		in.Files = append(in.Files, api.ChangedFile{Path: f, Change: api.FileModified, Added: 2, Removed: 1, Patch: onePatch})
	}
	return in
}

func (c *change) put(in api.ChangesReport) bool {
	c.Helper()
	got, err := c.ReportChanges(context.Background(), c.k.Caller, c.k.ID, c.claim.SessionID, in)
	if err != nil {
		c.Fatalf("%v", err)
	}
	return got.Changed
}

func (c *change) see() api.Changes {
	c.Helper()
	got, err := c.Changes(context.Background(), c.Owner, c.claim.SessionID)
	if err != nil {
		c.Fatalf("%v", err)
	}
	return got
}

func (c *change) end() {
	c.Helper()
	if _, err := c.k.Complete(c.claim, "done"); err != nil {
		c.Fatalf("%v", err)
	}
}

func (c *change) ask(in api.LandInput) api.Landing {
	c.Helper()
	l, err := c.RequestLanding(context.Background(), c.Owner, c.claim.SessionID, in)
	if err != nil {
		c.Fatalf("%v", err)
	}
	return l
}

func (c *change) tell(l api.Landing, in api.LandReport) (api.Landing, error) {
	in.InstanceID = c.k.Instance
	return c.AnswerLanding(context.Background(), c.k.Caller, c.k.ID, l.ID, in)
}

func TestChanges_APartDoesNotStandBeforeTheLastOneCame(t *testing.T) {
	c := changed(t, api.LandMerge)
	if !c.put(c.report("one", "a.go")) || c.put(c.report("one", "a.go")) {
		t.Fatal("the first report is new, and its repetition isn't")
	}
	in := c.report("two", "a.go", "b.go", "c.go")
	first, rest := in, in
	first.Files, first.Last = in.Files[:2], false
	rest.Files, rest.First = in.Files[2:], 2
	for range 2 { // sent again after a lost answer
		if c.put(first) {
			t.Fatal("a part counts as the whole")
		}
	}
	if got := c.see(); len(got.Files) != 1 {
		t.Fatalf("%d files stand before the report was complete, want the one from before", len(got.Files))
	}
	if !c.put(rest) {
		t.Fatal("the last part changed nothing")
	}
	got := c.see()
	if len(got.Files) != 3 || got.Files[2].Path != "c.go" || got.Files[0].Patch != onePatch || got.Branch != "stint/x" {
		t.Fatalf("got %+v", got)
	}
	late := c.report("three", "a.go", "b.go")
	late.Files, late.First = late.Files[1:], 1
	if _, err := c.ReportChanges(context.Background(), c.k.Caller, c.k.ID, c.claim.SessionID, late); api.CodeOf(err) != api.CodeInvalid {
		t.Fatalf("a second part without the first: %v", err)
	}
	c.Check()
}

func TestChanges_OnlyUnderTheClaimAndNeverByTheAgent(t *testing.T) {
	c := changed(t, api.LandMerge)
	run := c.k.Caller
	run.Run = &account.Run{Worker: c.k.ID, Session: c.claim.SessionID, Claim: c.claim.ClaimID}
	_, err := c.ReportChanges(context.Background(), run, c.k.ID, c.claim.SessionID, c.report("one", "a.go"))
	if api.CodeOf(err) != api.CodeUserTokenRequired {
		t.Errorf("by the run's token: %v", err)
	}
	c.end()
	_, err = c.ReportChanges(context.Background(), c.k.Caller, c.k.ID, c.claim.SessionID, c.report("one", "a.go"))
	if api.CodeOf(err) != api.CodeClaimNotActive {
		t.Errorf("after the end: %v", err)
	}
}

func TestLanding_AMergeEndsTheWait(t *testing.T) {
	c := changed(t, api.LandMerge)
	c.put(c.report("one", "a.go"))
	if got := c.see(); got.Waits || len(got.Verbs) > 0 || !strings.Contains(got.Why, "hasn't ended") {
		t.Fatalf("while it runs: waits %v, verbs %v, why %q", got.Waits, got.Verbs, got.Why)
	}
	c.end()
	got := c.see()
	if want := []api.LandVerb{api.VerbPush, api.VerbPullRequest, api.VerbMerge, api.VerbDiscard}; !got.Waits || !slices.Equal(got.Verbs, want) {
		t.Fatalf("waits %v, verbs %v, want %v (%s)", got.Waits, got.Verbs, want, got.Why)
	}
	if n := c.unlanded(); n != 1 {
		t.Fatalf("%d sessions wait to be landed, want 1", n)
	}
	l := c.ask(api.LandInput{Verb: api.VerbMerge, Method: api.MergeSquash, Message: "Add a search"})
	if _, err := c.RequestLanding(context.Background(), c.Owner, c.claim.SessionID, api.LandInput{Verb: api.VerbPush}); api.CodeOf(err) != api.CodeConflict {
		t.Fatalf("a second request: %v", err)
	}
	asked, err := c.Worker0()
	if err != nil || asked.Landing == nil || asked.Landing.ID != l.ID || asked.Landing.Method != api.MergeSquash || asked.Landing.Message != "Add a search" {
		t.Fatalf("the worker sees %+v, %v", asked.Landing, err)
	}
	state := c.report("", "").State
	state.Unpushed = 0
	for range 2 {
		if _, err := c.tell(l, api.LandReport{State: api.LandDone, LandOutcome: api.LandOutcome{Commit: "cccc"}, Now: &state}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.tell(l, api.LandReport{State: api.LandRefused}); api.CodeOf(err) != api.CodeConflict {
		t.Errorf("another answer: %v", err)
	}
	got = c.see()
	if got.Waits || c.unlanded() != 0 || got.Landing.State != api.LandDone || got.Landing.Commit != "cccc" || got.Unpushed != 0 || len(got.Files) != 1 {
		t.Errorf("after the merge: %+v", got)
	}
	if asked, err := c.Worker0(); err != nil || asked.Landing != nil {
		t.Errorf("the worker is still asked for %+v, %v", asked.Landing, err)
	}
	c.Check()
}

// Worker0 is the worker as its process sees it.
func (c *change) Worker0() (api.Worker, error) {
	return c.AwaitSignal(context.Background(), c.k.Caller, c.k.ID, c.k.Instance, engine.Known{}, 0)
}

func (c *change) unlanded() int {
	c.Helper()
	list, err := c.Sessions(context.Background(), c.Owner, api.SessionFilter{Unlanded: true}, api.Page{})
	if err != nil {
		c.Fatalf("%v", err)
	}
	home, err := c.Home(context.Background(), c.Owner, c.Clock.Now().Location())
	if err != nil {
		c.Fatalf("%v", err)
	}
	if int(home.Unlanded) != len(list.Items) {
		c.Fatalf("home says %d, the list has %d", home.Unlanded, len(list.Items))
	}
	return len(list.Items)
}

func TestLanding_WhatIsRefused(t *testing.T) {
	merge := api.LandInput{Verb: api.VerbMerge}
	for _, tt := range []struct {
		name  string
		land  api.LandLevel
		state func(*api.ChangesState)
		in    api.LandInput
		why   string
	}{
		{"off", api.LandOff, nil, merge, "setting land of this agent is off"},
		{"no level said", "", nil, merge, "setting land of this agent is off"},
		{"as far as pushes", api.LandPush, nil, merge, `as far as "push"`},
		{"pull request", api.LandPush, nil, api.LandInput{Verb: api.VerbPullRequest}, `as far as "push"`},
		{"dirty", api.LandMerge, func(s *api.ChangesState) { s.Dirty = true }, merge, "keep them first"},
		{"no base", api.LandMerge, func(s *api.ChangesState) { s.BaseBranch = "" }, merge, "isn't known which branch"},
		{"no remote", api.LandMerge, func(s *api.ChangesState) { s.Remote = "" }, api.LandInput{Verb: api.VerbPush}, "no remote"},
		{"nothing to keep", api.LandMerge, nil, api.LandInput{Verb: api.VerbKeep}, "committed already"},
		{"somebody's own folder", api.LandMerge, func(s *api.ChangesState) { s.Place = api.PlaceFolder }, merge, "not its own"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := changed(t, tt.land)
			in := c.report("one", "a.go")
			if tt.state != nil {
				tt.state(&in.State)
			}
			c.put(in)
			c.end()
			_, err := c.RequestLanding(context.Background(), c.Owner, c.claim.SessionID, tt.in)
			if api.CodeOf(err) != api.CodeConflict || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("got %v, want a conflict that says %q", err, tt.why)
			}
		})
	}
}

func TestLanding_WhoMayAsk(t *testing.T) {
	for _, mode := range []api.Mode{api.Local, api.Cloud} {
		c := changed(t, api.LandMerge, func(in *api.AgentInput) { in.Mode = mode })
		c.put(c.report("one", "a.go"))
		c.end()
		ask := func(by engine.Caller) api.Code {
			_, err := c.RequestLanding(context.Background(), by, c.claim.SessionID, api.LandInput{Verb: api.VerbPush})
			return api.CodeOf(err)
		}
		key, run, program := c.Owner, c.Owner, c.Owner
		key.KeyID, key.Scopes = 7, api.Scopes
		run.Run = &account.Run{Worker: c.k.ID, Session: c.claim.SessionID}
		program.Client = "app_0000000001"
		for name, by := range map[string]engine.Caller{"key": key, "run": run, "program": program} {
			if got := ask(by); got != api.CodeUserTokenRequired {
				t.Errorf("%s, %s: got %q", mode, name, got)
			}
		}
		other := c.Owner
		other.UserID, other.Role = other.UserID+1, api.Member
		if got, want := ask(other), map[api.Mode]api.Code{api.Local: api.CodeNotFound, api.Cloud: api.CodeForbidden}[mode]; got != want {
			t.Errorf("%s, another member: got %q, want %q", mode, got, want)
		}
		if got := ask(c.Owner); got != "" {
			t.Errorf("%s, its owner: got %q", mode, got)
		}
	}
}

func TestLanding_WithdrawnAndDoneAllTheSame(t *testing.T) {
	c := changed(t, api.LandMerge)
	c.put(c.report("one", "a.go"))
	c.end()
	l := c.ask(api.LandInput{Verb: api.VerbMerge})
	if _, err := c.WithdrawLanding(context.Background(), c.Owner, c.claim.SessionID, l.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := c.WithdrawLanding(context.Background(), c.Owner, c.claim.SessionID, l.ID); api.CodeOf(err) != api.CodeConflict {
		t.Errorf("twice: %v", err)
	}
	got, err := c.tell(l, api.LandReport{State: api.LandDone, LandOutcome: api.LandOutcome{Commit: "cccc"}})
	if err != nil || got.State != api.LandDone || c.see().Waits {
		t.Errorf("the worker had done it: %+v, %v", got, err)
	}
	c.Check()
}

func TestLanding_DiscardAsksTwice(t *testing.T) {
	c := changed(t, api.LandPush)
	c.put(c.report("one", "a.go"))
	c.end()
	l := c.ask(api.LandInput{Verb: api.VerbDiscard})
	if _, err := c.tell(l, api.LandReport{State: api.LandAsks, LandOutcome: api.LandOutcome{Detail: "1 commit", Paths: []string{"a.go"}, Token: "t1"}}); err != nil {
		t.Fatal(err)
	}
	if got := c.see(); !got.Waits || got.Landing.Token != "t1" || !slices.Contains(got.Verbs, api.VerbDiscard) {
		t.Fatalf("after it asked: %+v", got)
	}
	l = c.ask(api.LandInput{Verb: api.VerbDiscard, Confirm: "t1"})
	if _, err := c.tell(l, api.LandReport{State: api.LandDone}); err != nil {
		t.Fatal(err)
	}
	if got := c.see(); got.Waits || len(got.Verbs) > 0 {
		t.Errorf("after it is gone: waits %v, verbs %v", got.Waits, got.Verbs)
	}
}

func TestReview_BecomesOneMessage(t *testing.T) {
	c := changed(t, api.LandOff, func(in *api.AgentInput) { in.Type = api.TypeClaudeCode; in.Run.Command = nil })
	c.put(c.report("one", "b.go", "a.go"))
	c.end()
	say := func(in api.ReviewInput) (api.ReviewComment, error) {
		return c.CommentOnChanges(context.Background(), c.Owner, c.claim.SessionID, in)
	}
	for _, in := range []api.ReviewInput{
		{Path: "b.go", Line: 2, Text: "Why 2?"}, {Path: "a.go", Line: 2, Side: api.SideOld, Text: "Keep this."}, {Text: "Well done."}, {Path: "b.go", Text: "Add a test."},
	} {
		if _, err := say(in); err != nil {
			t.Fatal(err)
		}
	}
	for _, in := range []api.ReviewInput{{Path: "c.go", Text: "x"}, {Path: "b.go", Line: 90, Text: "x"}, {Line: 1, Text: "x"}, {Path: "b.go"}, {Path: "b.go", Side: "left", Text: "x"}} {
		if _, err := say(in); api.CodeOf(err) != api.CodeInvalid {
			t.Errorf("%+v: %v", in, err)
		}
	}
	extra, err := say(api.ReviewInput{Path: "b.go", Line: 1, Text: "No."})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.DropComment(context.Background(), c.Owner, c.claim.SessionID, extra.ID); err != nil {
		t.Fatal(err)
	}
	posted, err := c.SendReview(context.Background(), c.Owner, c.claim.SessionID, api.ReviewSend{Text: "Some remarks."})
	if err != nil {
		t.Fatal(err)
	}
	want := "Some remarks.\n\nWell done.\n\na.go, line 2 as it was before your changes:\n> two\nKeep this.\n\nb.go:\nAdd a test.\n\nb.go, line 2:\n> 2\nWhy 2?"
	if posted.Session.ThreadID != c.Get(c.claim.SessionID).ThreadID || posted.Session.ID == c.claim.SessionID || posted.Session.Prompt != want {
		t.Errorf("got %q, want %q", posted.Session.Prompt, want)
	}
	if left, err := c.Review(context.Background(), c.Owner, c.claim.SessionID); err != nil || len(left.Items) > 0 {
		t.Errorf("%d comments are left, %v", len(left.Items), err)
	}
	if _, err := c.SendReview(context.Background(), c.Owner, c.claim.SessionID, api.ReviewSend{}); api.CodeOf(err) != api.CodeConflict {
		t.Errorf("sent again: %v", err)
	}
}

func TestReview_WithoutATextBeginsWithItsFiles(t *testing.T) {
	c := changed(t, api.LandOff, func(in *api.AgentInput) { in.Type = api.TypeClaudeCode; in.Run.Command = nil })
	c.put(c.report("one", "b.go", "a.go"))
	c.end()
	for _, in := range []api.ReviewInput{{Path: "b.go", Line: 2, Text: "Why 2?"}, {Path: "a.go", Text: "Add a test."}} {
		if _, err := c.CommentOnChanges(t.Context(), c.Owner, c.claim.SessionID, in); err != nil {
			t.Fatal(err)
		}
	}
	posted, err := c.SendReview(t.Context(), c.Owner, c.claim.SessionID, api.ReviewSend{})
	if want := "Comments on your changes to a.go and another file:"; err != nil || posted.Session.Title != want {
		t.Errorf("it is titled %q (%v), want %q", posted.Session.Title, err, want)
	}
}

func TestLanding_MovesTheTaskToDone(t *testing.T) {
	for _, lets := range []bool{true, false} {
		c := changed(t, api.LandMerge, func(in *api.AgentInput) {
			if !lets {
				in.TaskUpdates = api.Labels{api.UpdateClaimed, api.UpdateCompleted}
			}
		})
		c.end()
		task, _, err := c.CreateTask(context.Background(), c.Owner, api.TaskInput{Title: "Add a search", Priority: "p2"}, engine.Idempotency{})
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := c.DispatchTask(context.Background(), c.Owner, task.Key, api.DispatchInput{Agent: c.agent.Slug}, engine.Idempotency{})
		if err != nil {
			t.Fatal(err)
		}
		c.claim = c.k.Claim(got.Session.ID)
		c.put(c.report("one", "a.go"))
		c.end()
		if _, err := c.tell(c.ask(api.LandInput{Verb: api.VerbMerge}), api.LandReport{State: api.LandDone}); err != nil {
			t.Fatal(err)
		}
		now, err := c.Engine.Task(context.Background(), c.Owner, task.Key)
		want := map[bool]api.TaskState{true: api.TaskDone, false: api.TaskReview}[lets]
		if err != nil || now.State != want {
			t.Errorf("lets %v: the task is %s, want %s, %v", lets, now.State, want, err)
		}
		c.Check()
	}
}

func TestPrune_ChangesGoWithTheOutput(t *testing.T) {
	c := changed(t, api.LandMerge)
	c.put(c.report("one", "a.go"))
	prints(t, c.Fixture, c.k, c.claim, "hello")
	c.end()
	later(c.Fixture, 31*day)
	prune(t, c.Fixture)
	if got := c.see(); len(got.Files) != 0 || got.FileCount != 1 || !got.Waits {
		t.Errorf("after the output went: %d files of %d, waits %v", len(got.Files), got.FileCount, got.Waits)
	}
	later(c.Fixture, 150*day)
	prune(t, c.Fixture)
	for _, table := range []string{"sessions", "changes", "changed_files", "landings", "review_comments"} {
		if n := c.Tell("SELECT COUNT(*) FROM " + table)[0]; n != "0" {
			t.Errorf("%s rows are left in %s", n, table)
		}
	}
	c.Check()
}
