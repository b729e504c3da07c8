package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"stint/api"
)

// change begins a conversation in a git workspace, whose worker's owner lets changes be landed so
// far.
func (s *fixture) change(t *testing.T, land api.LandLevel) *talkJob {
	t.Helper()
	a := s.Agent(func(in *api.AgentInput) {
		in.Slug, in.Name, in.Type, in.Run = "coder", "Coder", api.TypeClaudeCode, api.Run{WorkFolder: "/srv/coder"}
		in.MaxConcurrent = 9
	})
	k := s.Worker(a, func(in *api.WorkerInput) { in.Types, in.Land = []api.AgentType{api.TypeClaudeCode}, land })
	one := s.New(a, func(in *api.SessionInput) { in.Title, in.Prompt = "Limit requests per key", new("Please limit them.") })
	return &talkJob{s: s, agent: a, k: k, claim: k.Claim(one.ID)}
}

// report tells what the session changed.
func (j *talkJob) report(state api.ChangesState, files ...api.ChangedFile) {
	j.s.Helper()
	j.said++
	in := api.ChangesReport{UnderClaim: j.k.Under(j.claim.ClaimID), Snapshot: fmt.Sprintf("s%d", j.said), State: state, Files: files, FileCount: int64(len(files)), Last: true}
	for _, f := range files {
		in.Added, in.Removed = in.Added+f.Added, in.Removed+f.Removed
	}
	if _, err := j.s.ReportChanges(j.s.Context(), j.k.Caller, j.k.ID, j.claim.SessionID, in); err != nil {
		j.s.Fatalf("report changes: %v", err)
	}
}

func (j *talkJob) finish() {
	j.s.Helper()
	if _, err := j.k.Complete(j.claim, "Done."); err != nil {
		j.s.Fatalf("complete: %v", err)
	}
}

// answer answers the pending request to land as the worker.
func (j *talkJob) answer(state api.LandState, out api.LandOutcome) {
	j.s.Helper()
	w, err := j.s.Engine.Worker(j.s.Context(), j.s.Owner, j.k.ID)
	if err != nil || w.Landing == nil {
		j.s.Fatalf("the worker is asked nothing: %v", err)
	}
	if _, err := j.s.AnswerLanding(j.s.Context(), j.k.Caller, j.k.ID, w.Landing.ID, api.LandReport{InstanceID: j.k.Instance, State: state, LandOutcome: out}); err != nil {
		j.s.Fatalf("answer: %v", err)
	}
}

func (j *talkJob) changesPath() string { return j.path() + "?view=changes" }

// drafts are the comments that the owner hasn't sent.
func (j *talkJob) drafts() []api.ReviewComment {
	j.s.Helper()
	list, err := j.s.Review(j.s.Context(), j.s.Owner, j.claim.SessionID)
	if err != nil {
		j.s.Fatalf("read comments: %v", err)
	}
	return list.Items
}

// landed is the newest request to land.
func (j *talkJob) landed() *api.Landing {
	j.s.Helper()
	c, err := j.s.Engine.Changes(j.s.Context(), j.s.Owner, j.claim.SessionID)
	if err != nil {
		j.s.Fatalf("read changes: %v", err)
	}
	return c.Landing
}

// reviewed is an ended session with changes and a comment on them.
func (s *fixture) reviewed(t *testing.T) *talkJob {
	t.Helper()
	if s.coder == nil {
		s.coder = s.change(t, api.LandMerge)
	} else {
		s.coder = s.another(s.coder)
	}
	s.coder.report(inWorktree(s.Clock.Now()), everyFile()...)
	s.coder.finish()
	if _, err := s.CommentOnChanges(t.Context(), s.Owner, s.coder.claim.SessionID, api.ReviewInput{Path: "run.sh", Text: "Why?"}); err != nil {
		t.Fatal(err)
	}
	return s.coder
}

// pendingFor is a request to land that waits, where a path needs one; "" where it needs none.
func (j *talkJob) pendingFor(path string) string {
	j.s.Helper()
	if !strings.Contains(path, "{landing}") {
		return ""
	}
	l, err := j.s.RequestLanding(j.s.Context(), j.s.Owner, j.claim.SessionID, api.LandInput{Verb: api.VerbPush})
	if err != nil {
		j.s.Fatalf("ask to land: %v", err)
	}
	return l.ID.String()
}

// inWorktree is a workspace from which everything can be done.
func inWorktree(at time.Time) api.ChangesState {
	return api.ChangesState{
		Place: api.PlaceWorktree, Branch: "stint/limit-requests", BaseBranch: "main", Base: "9f1c2d3e4b5a69788796a5b4c3d2e1f009f1c2d3", Head: "1234567890abcdef1234567890abcdef12345678",
		Remote: "example.test/acme/api", CommitCount: 2, Unpushed: 1, Commits: []api.Commit{
			{ID: "1234567890abcdef1234567890abcdef12345678", Subject: "Say how long to wait <b>", At: api.Time{Time: at.Add(-time.Minute)}},
			{ID: "abcdef1234567890abcdef1234567890abcdef12", Subject: "Limit requests per key", At: api.Time{Time: at.Add(-3 * time.Minute)}},
		},
	}
}

const (
	somePatch = "@@ -1,4 +1,5 @@ package limit\n package limit\n \n-const most = 10 // <script>alert(1)</script>\n+const most = 60\n+const per = time.Minute\n // end\u202e\n\\ No newline at end of file\n"
	badPath   = `"a\n\"b\" <script>alert(2)</script>.txt"`
)

// everyFile is one of each kind.
func everyFile() []api.ChangedFile {
	return []api.ChangedFile{
		{Path: "limit/limit.go", Change: api.FileModified, Added: 2, Removed: 1, Patch: somePatch},
		{Path: "limit/store.go", OldPath: "store.go", Change: api.FileRenamed},
		{Path: badPath, Change: api.FileAdded, Added: 1, Patch: "@@ -0,0 +1 @@\n+\"><img src=x onerror=alert(3)>\n"},
		{Path: "docs/limits.png", Change: api.FileAdded, Binary: true},
		{Path: "go.sum", Change: api.FileModified, Added: 900, Removed: 3, Cut: true, Patch: longPatch(160)},
		{Path: "gen/large.go", Change: api.FileModified, Added: 70000, Removed: 1, Cut: true},
		{Path: "run.sh", Change: api.FileMode},
		{Path: "old.go", Change: api.FileDeleted, Removed: 2, Patch: "@@ -1,2 +0,0 @@\n-package old\n-\n"},
	}
}

// longPatch adds lines.
func longPatch(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "@@ -1,1 +1,%d @@\n a\n", n+1)
	for i := range n {
		fmt.Fprintf(&b, "+line %d of it\n", i+2)
	}
	return b.String()
}

func TestChanges_SayWhereTheWorkspaceStands(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.change(t, api.LandOff)
	if page := s.get(j.changesPath()).Body.String(); strings.Contains(page, "view=changes") {
		t.Error("a session without changes has a tab for them")
	}
	state := inWorktree(s.Clock.Now())
	state.Dirty = true
	j.report(state, everyFile()...)
	page := s.get(j.changesPath()).Body.String()
	wholePage(t, j.changesPath(), page)
	for _, want := range []string{
		`Changes <span class="count">8</span>`, "8 files, +70903 −7", "Not all committed", "<code>stint/limit-requests</code>", "<code>main</code>", "<code>9f1c2d3e4b</code>",
		"example.test/acme/api", "2 commits, 1 of them not pushed", "Say how long to wait &lt;b&gt;", "<code>abcdef1234</code>",
		"store.go → limit/store.go", "A binary file", "Renamed, no line changed", "longer than the 64 KiB", "Its diff was left out", "Only its mode changed",
		"const most = 10 // &lt;script&gt;", `\u{202e}`, "&lt;img src=x", "The session hasn&#39;t ended",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "<img src=x") || strings.Contains(page, "\u202e") {
		t.Error("something of the diff is more than text")
	}
	if plain := s.get(j.path()).Body.String(); strings.Contains(plain, AssetURL("changes.css")) || !strings.Contains(page, AssetURL("changes.css")) {
		t.Error("the style of changes is loaded elsewhere, or not there")
	}
}

// A worker that found nothing says so; files that were removed with the output are another thing.
func TestChanges_WithoutFiles(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.change(t, api.LandOff)
	j.report(inWorktree(s.Clock.Now()))
	if page := s.get(j.changesPath()).Body.String(); !strings.Contains(page, "No file differs") {
		t.Error("the page doesn't say that nothing was changed")
	}
	j.report(inWorktree(s.Clock.Now()), everyFile()...)
	j.tell(everyKind...)
	j.finish()
	s.Jump(31 * 24 * time.Hour)
	if _, err := s.PruneAll(t.Context(), s.Owner, false); err != nil {
		t.Fatal(err)
	}
	if page := s.get(j.changesPath()).Body.String(); !strings.Contains(page, "The files are not kept any more") || strings.Contains(page, "are not listed") || !strings.Contains(page, "8 files, +70903") {
		t.Error("the page doesn't say that the files are gone")
	}
}

func TestChanges_LongDiffsHavePagesOfTheirOwn(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.change(t, api.LandOff)
	long := api.ChangedFile{Path: "a b&c.txt", Change: api.FileModified, Added: 3000, Patch: longPatch(3000)}
	j.report(inWorktree(s.Clock.Now()), long, everyFile()[0])
	page := s.get(j.changesPath()).Body.String()
	own := j.path() + "?file=a+b%26c.txt&amp;view=changes"
	if !strings.Contains(page, own) || strings.Contains(page, "line 7 of it") || !strings.Contains(page, "const most = 60") || !strings.Contains(page, "Show its 3002 lines") {
		t.Error("the long diff is on the page, or nothing leads to it, or it hides the next one")
	}
	path := strings.ReplaceAll(own, "&amp;", "&")
	for at, want := range map[string][2]string{"": {"line 7 of it", "line 1300 of it"}, "&row=1200": {"line 1300 of it", "line 7 of it"}} {
		page := s.get(path + at).Body.String()
		wholePage(t, path, page)
		if !strings.Contains(page, want[0]) || strings.Contains(page, want[1]) || !strings.Contains(page, "More lines") {
			t.Errorf("%s: not the rows that were asked for", at)
		}
	}
	// A line is commented on where it stands.
	page = s.get(j.changesPath() + "&comment=" + url.QueryEscape(long.Path) + "&line=2900&side=new").Body.String()
	if !strings.Contains(page, "Comment on line 2900") || !strings.Contains(page, "line 2900 of it") || strings.Contains(page, "line 7 of it") {
		t.Error("the form isn't under its line")
	}
	to := wentTo(t, s.post(j.path()+"/review", "path", long.Path, "line", "2900", "side", "new", "text", "Too long.", "file", long.Path, "row", "2400"), j.path())
	if body := s.get(strings.Split(to, "#")[0]).Body.String(); !strings.Contains(body, "Too long.") {
		t.Errorf("%s doesn't show the comment", to)
	}
}

func TestChanges_ManyFilesArePaged(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.change(t, api.LandOff)
	var many []api.ChangedFile
	for i := range 300 {
		many = append(many, api.ChangedFile{Path: fmt.Sprintf("f%03d.go", i), Change: api.FileAdded, Added: 1, Patch: "@@ -0,0 +1 @@\n+x\n"})
	}
	j.report(inWorktree(s.Clock.Now()), many...)
	page := s.get(j.changesPath()).Body.String()
	wholePage(t, j.changesPath(), page)
	if !strings.Contains(page, "1 to 100 of 300") || !strings.Contains(page, "f099.go") || strings.Contains(page, "f100.go") {
		t.Error("the first page doesn't have the first hundred files")
	}
	if page = s.get(j.changesPath() + "&from=200").Body.String(); !strings.Contains(page, "f299.go") || strings.Contains(page, "f199.go") || strings.Contains(page, "More files") {
		t.Error("the last page doesn't have the last hundred files")
	}
	if page = s.get(j.changesPath() + "&comment=f150.go").Body.String(); !strings.Contains(page, "f150.go") || !strings.Contains(page, "Comment on this file") {
		t.Error("a file further on can't be commented on")
	}
}

func TestReview_IsNotedLineByLineAndSentAsOne(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.change(t, api.LandOff)
	j.report(inWorktree(s.Clock.Now()), everyFile()...)
	j.finish()
	open := j.changesPath() + "&comment=limit%2Flimit.go&line=3&side=old"
	if !strings.Contains(s.get(j.changesPath()).Body.String(), strings.ReplaceAll(j.path()+"?comment=limit%2Flimit.go&view=changes&line=3&side=old#comment", "&", "&amp;")) {
		t.Error("no line number leads to the form")
	}
	page := s.get(open).Body.String()
	wholePage(t, open, page)
	row, form := strings.Index(page, "const most = 10"), strings.Index(page, `id="comment"`)
	if row < 0 || form < row || form > strings.Index(page, "const most = 60") {
		t.Error("the form isn't under its line")
	}
	review := j.path() + "/review"
	refused(t, s.post(review, "path", "limit/limit.go", "line", "3", "side", "old", "text", " "), "Comment on line 3 as it was before", `id="comment-text-error"`)
	refused(t, s.post(review, "path", "limit/limit.go", "line", "99", "text", "typed text"), "typed text", `id="comment-line-error"`, `value="99"`)
	refused(t, s.post(review, "path", "limit/limit.go", "line", "soon", "text", "typed text"), "typed text", "ust be a whole number")
	refused(t, s.post(review, "path", "nothing", "text", "typed text"), "typed text")
	wentTo(t, s.post(review, "path", "limit/limit.go", "line", "3", "side", "old", "text", "Why <b>ten</b>?"), j.path())
	to := wentTo(t, s.post(review, "path", "run.sh", "line", "", "text", "Leave it."), j.path())
	wentTo(t, s.post(review, "path", "", "text", "Good."), j.path())
	drafts := j.drafts()
	if len(drafts) != 3 || !strings.HasSuffix(to, "#"+drafts[1].ID.String()) {
		t.Fatalf("noted %+v, led to %s", drafts, to)
	}
	page = s.get(j.changesPath()).Body.String()
	wholePage(t, j.changesPath(), page)
	for _, want := range []string{"Why &lt;b&gt;ten&lt;/b&gt;?", "Leave it.", "Good.", "Send 3 comments", drafts[1].ID.String() + "/drop"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	wentTo(t, s.post(review+"/"+drafts[1].ID.String()+"/drop"), j.path())
	if res := s.post(review + "/" + drafts[1].ID.String() + "/drop"); res.Code != http.StatusNotFound {
		t.Errorf("dropped twice: status %d", res.Code)
	}
	refused(t, s.post(review+"/send", "text", strings.Repeat("x", 9000)), strings.Repeat("x", 9000), `id="review-text-error"`)
	next := wentTo(t, s.post(review+"/send", "text", "Nearly."), "/sessions/ses_")
	if next == j.path() || len(j.drafts()) != 0 {
		t.Errorf("sent to %s, %d comments left", next, len(j.drafts()))
	}
	if body := s.get(next).Body.String(); !strings.Contains(body, "Nearly.") || !strings.Contains(body, "limit/limit.go, line 3 as it was before your changes") {
		t.Error("the conversation doesn't have the review")
	}
	if res := s.post(review+"/send", "text", ""); res.Code != http.StatusConflict || !strings.Contains(res.Body.String(), "no comments here") {
		t.Errorf("nothing to send: status %d", res.Code)
	}
}

// A command takes no messages, so there is nobody to send a review to.
func TestReview_NotOfCommands(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	running := s.running[0]
	j := &talkJob{s: s, k: running.k, claim: running.claim}
	j.report(inWorktree(s.Clock.Now()), everyFile()...)
	page := s.get(j.changesPath() + "&comment=run.sh").Body.String()
	wholePage(t, j.changesPath(), page)
	if strings.Contains(page, "comment=") || strings.Contains(page, `id="comment"`) || !strings.Contains(page, "const most = 60") {
		t.Error("a command's changes can be commented on, or aren't shown")
	}
}
