package web

import (
	"fmt"
	"slices"
	"strings"

	"stint/api"
)

// landVerb is how one of the things that can be done with changes is named.
type landVerb struct {
	button string
	do     string // after "asked to"
	done   string
	not    string
	icon   string
}

var landVerbs = map[api.LandVerb]landVerb{
	api.VerbKeep:        {"Commit what isn't committed", "commit what isn't committed", "Committed", "Not committed", "check"},
	api.VerbPush:        {"Push", "push the branch", "Pushed", "Not pushed", "arrow-up"},
	api.VerbPullRequest: {"Open a pull request", "open a pull request", "Pull request", "No pull request", "git-branch"},
	api.VerbMerge:       {"Merge", "merge the changes", "Merged", "Not merged", "git-merge"},
	api.VerbDiscard:     {"Discard…", "discard the changes", "Discarded", "Not discarded", "trash-2"},
}

// landCodes are the words for why a request to land was refused.
var landCodes = map[string]string{
	api.LandNotAllowed: "its worker's owner doesn't allow it", api.LandDirty: "some files are not committed", api.LandConflict: "there are conflicts",
	api.LandProtected: "the branch is protected", api.LandNothing: "there is nothing to land", api.LandBusy: "the workspace is in use",
	api.LandGone: "the workspace is gone", api.LandNoBase: "it isn't known into which branch", api.LandNoRemote: "there is no remote",
	api.LandRemote: "the remote refused", api.LandUnderway: "another operation of git is under way", api.LandFilter: "some files go through a filter of git's",
	api.LandUnsupported: "that isn't supported there", api.LandFailed: "it failed", api.LandRightLost: "whoever asked may not any more",
}

// landDo is what somebody asks of the worker. Of a discard it first says what would be lost.
func landDo(v api.LandVerb, confirmed bool) string {
	if v == api.VerbDiscard && !confirmed {
		return "say what discarding would lose"
	}
	return landVerbs[v].do
}

// landTitle says in a few words how far a request is.
func landTitle(l *api.Landing) string {
	words := landVerbs[l.Verb]
	switch l.State {
	case api.LandPending:
		return "Waiting for the worker to " + landDo(l.Verb, l.Confirm != "")
	case api.LandDone:
		return words.done
	case api.LandAsks:
		return "Discard all of this?"
	case api.LandWithdrawn:
		return words.not + ": the request was taken back"
	}
	if why := landCodes[l.Code]; why != "" {
		return words.not + ": " + why
	}
	return words.not
}

// landedWords are the titles of what was asked to be done with changes, in place of those
// of other events: they depend on the verb.
func landedWords(ev api.Event) string {
	verb := landVerbs[api.LandVerb(eventText(ev, "verb"))]
	if asked, ok := ev.Data["confirmed"].(bool); ok {
		verb.do = landDo(api.VerbDiscard, asked)
	}
	switch {
	case verb.do == "":
	case ev.Type == api.EventLandingRequested:
		return "Asked to " + verb.do + " by {who}"
	case ev.Type == api.EventLandingDone:
		return verb.done
	case ev.Type == api.EventLandingRefused && eventText(ev, "code") == "":
		return verb.not + " yet: the worker said what would be lost"
	case ev.Type == api.EventLandingRefused:
		return verb.not
	case ev.Type == api.EventLandingWithdrawn:
		return "The request to " + verb.do + " was taken back by {who}"
	}
	return ""
}

// landTone is how much that matters.
func landTone(l *api.Landing) Tone {
	switch l.State {
	case api.LandRefused:
		return Bad
	case api.LandAsks:
		return Warn
	}
	return Info
}

// landPaths heads the paths that a worker names.
func landPaths(l *api.Landing) string {
	switch {
	case l.State == api.LandAsks:
		return "What would be lost"
	case l.State == api.LandDone:
		return "What was lost"
	case l.Code == api.LandConflict:
		return "In conflict"
	}
	return "These files"
}

// verbs are what the form offers beside discarding.
func (p sessionPage) verbs() []api.LandVerb {
	return slices.DeleteFunc(slices.Clone(p.Changes.Verbs), func(v api.LandVerb) bool { return v == api.VerbDiscard })
}

func (p sessionPage) offers(v api.LandVerb) bool { return slices.Contains(p.Changes.Verbs, v) }

// landButton is the word on a verb's button.
func (p sessionPage) landButton(v api.LandVerb) string {
	if base := p.Changes.BaseBranch; v == api.VerbMerge && base != "" {
		return "Merge into " + firstLine(base, 40)
	}
	return landVerbs[v].button
}

// landForm is the id of the form: another one when something else is offered, so that a live
// update replaces it.
func (p sessionPage) landForm() string { return "land-" + commaWords(p.verbs()) }

// landMessage is the field for the message, as it was typed or else with the session's title.
func (p sessionPage) landMessage() Input {
	in := Input{ID: "land-message", Name: "message", Label: "Message", Value: titleOf(p.Session.Session), Hint: "Of the commit, or title and text of the pull request."}
	if c := p.Changes; c != nil && len(c.Commits) == 1 && !c.Dirty {
		in.Value = c.Commits[0].Subject
	}
	if p.asked.typed.Has("message") {
		in.Value = p.asked.typed.Get("message")
	}
	in.Error = sentence(p.asked.errors["message"])
	return in
}

// landFault is what was wrong with a request to land besides its message.
func (p sessionPage) landFault() string {
	var out []string
	for _, field := range []string{"verb", "method", "confirm"} {
		if detail := p.asked.errors[field]; detail != "" {
			out = append(out, sentence(field+" "+detail))
		}
	}
	if len(p.verbs()) == 0 && p.asked.errors["message"] != "" {
		out = append(out, p.asked.errors["message"])
	}
	return strings.Join(out, " ")
}

// whyNot says why not everything is offered; a request that waits says so itself.
func (p sessionPage) whyNot() string {
	if p.pendingLanding() {
		return ""
	}
	return p.Changes.Why
}

func (p sessionPage) pendingLanding() bool {
	return p.Changes.Landing != nil && p.Changes.Landing.State == api.LandPending
}

var mergeWords = map[api.MergeMethod]string{
	api.MergeAuto: "Fast-forward, or else a merge commit", api.MergeFastForward: "Fast-forward, or not at all",
	api.MergeSquash: "Squash: one commit of everything", api.MergeCommit: "A merge commit in any case",
}

func mergeOptions() []Option {
	out := []Option{{"", mergeWords[api.MergeAuto]}}
	for _, m := range api.MergeMethods {
		out = append(out, Option{string(m), mergeWords[m]})
	}
	return out
}

var placeWords = map[api.Place]string{
	api.PlaceWorktree: "A worktree of the conversation's own", api.PlaceClone: "A repository in the conversation's own folder",
	api.PlaceFolder: "The agent's work folder, which is not its own",
}

// shortCommit is a commit's id as people write it.
func shortCommit(id string) string { return id[:min(len(id), 10)] }

// commitWords count the commits, and say which of them are nowhere else.
func commitWords(s api.ChangesState) string {
	if s.CommitCount == 0 {
		return "None"
	}
	words := Count(int(s.CommitCount), "commit", "commits")
	switch {
	case s.Unpushed == 0:
		return words + ", pushed"
	case s.Unpushed == s.CommitCount:
		return words + ", not pushed"
	}
	return words + fmt.Sprintf(", %d of them not pushed", s.Unpushed)
}

// changeLook is how a file's change is named and coloured.
type changeLook struct{ word, class string }

var changeLooks = map[api.FileChange]changeLook{
	api.FileAdded: {"Added", "s-complete"}, api.FileModified: {"Changed", "s-active"}, api.FileDeleted: {"Deleted", "s-error"},
	api.FileRenamed: {"Renamed", "s-pending"}, api.FileMode: {"Mode", "s-queued"}, api.FileSubmodule: {"Submodule", "s-queued"},
}

// pathWords are a path as a screen shows it, with everything visible that it holds.
func pathWords(f api.ChangedFile) string {
	if f.OldPath != "" && f.OldPath != f.Path {
		return api.Visible(f.OldPath) + " → " + api.Visible(f.Path)
	}
	return api.Visible(f.Path)
}

// filesWords sum changes up: "3 files, +12 −4".
func filesWords(files, added, removed int64) string {
	return fmt.Sprintf("%s, +%d −%d", Count(int(files), "file", "files"), added, removed)
}

// lack says what of a file's diff there is not to see; "" when all of it is there.
func (f diffFile) lack() string {
	switch {
	case f.Binary:
		return "A binary file: only that it changed is recorded."
	case f.Patch == "" && (f.Cut || f.Added+f.Removed > 0):
		return "Its diff was left out: all diffs of a session together may have 2 MiB. The workspace has it."
	case f.Patch == "":
		return noLines[f.Change]
	case f.of == 0:
		return "Its diff can't be read."
	case f.Cut && (!f.alone || f.last()):
		return "The diff is longer than the 64 KiB that are kept of a file: the rest is in the workspace."
	}
	return ""
}

// last reports whether the page holds the end of the file's rows.
func (f diffFile) last() bool { return f.from+len(f.rows) >= f.of }

var noLines = map[api.FileChange]string{
	api.FileAdded: "An empty file.", api.FileDeleted: "It was empty.", api.FileRenamed: "Renamed, no line changed.",
	api.FileMode: "Only its mode changed.", api.FileSubmodule: "A submodule: it points to another commit.", api.FileModified: "No line changed.",
}

// mark is the class of a row.
func (r diffRow) mark() string {
	switch r.Kind {
	case '+':
		return "add"
	case '-':
		return "del"
	case '@':
		return "hunk"
	case '\\':
		return "aside"
	}
	return ""
}

// lineWords name what a comment is about.
func lineWords(line int64, side api.ReviewSide) string {
	switch {
	case line == 0:
		return "The file"
	case side == api.SideOld:
		return fmt.Sprintf("Line %d as it was", line)
	}
	return fmt.Sprintf("Line %d", line)
}

func landIcon(l *api.Landing) string {
	if l.State == api.LandPending {
		return "hourglass"
	}
	if l.State == api.LandDone {
		return landVerbs[l.Verb].icon
	}
	return landTone(l).icon()
}

// lossToken is what confirms the loss that the worker spoke of; "" when it asks nothing.
func (p sessionPage) lossToken() string {
	if l := p.Changes.Landing; l != nil && l.State == api.LandAsks {
		return l.Token
	}
	return ""
}

// isWeb reports whether an address is one that a page may lead to.
func isWeb(address string) bool {
	return strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://")
}

// span says which files of how many the page has.
func (c changesView) span() string {
	if len(c.files) == len(c.Files) {
		return fmt.Sprint(len(c.files))
	}
	return fmt.Sprintf("%d to %d of %d", c.at.from+1, c.at.from+len(c.files), len(c.Files))
}

// recordedWords sum up the changes that an event recorded.
func recordedWords(ev api.Event) string {
	n := func(key string) int64 { f, _ := ev.Data[key].(float64); return int64(f) }
	return filesWords(n("files"), n("added"), n("removed"))
}
