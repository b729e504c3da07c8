package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"stint/account"
	"stint/api"
	"stint/engine"
)

// How much of a session's changes one page draws. A diff has about 200 bytes a row.
const (
	filesOnPage = 100 // of the list of files
	rowsDrawn   = 800 // of all diffs together; what doesn't fit has a page of its own
	rowsOfFile  = 1200
	rowsFolded  = 150 // a longer diff is folded at first
	filesFolded = 30  // so is a longer list
)

// changesAt is which part of a session's changes a page shows, as its address has it.
type changesAt struct {
	file string // that has the page to itself; "" = all of them
	from int    // the first file
	row  int    // the first row of that one file's diff
}

func readChangesAt(q url.Values) changesAt {
	at := changesAt{file: q.Get("file")}
	at.from, _ = strconv.Atoi(q.Get("from"))
	at.row, _ = strconv.Atoi(q.Get("row"))
	at.from, at.row = max(0, at.from), max(0, at.row)
	return at
}

func (at changesAt) values() url.Values {
	out := filterValues("view", "changes", "file", at.file)
	if at.from > 0 {
		out.Set("from", strconv.Itoa(at.from))
	}
	if at.row > 0 {
		out.Set("row", strconv.Itoa(at.row))
	}
	return out
}

// url is the address of that part of a session's changes.
func (at changesAt) url(id api.SessionID, more ...string) string {
	return filterURL(sessionURL(id), at.values(), more)
}

// changesView is what changes.templ draws beside the session.
type changesView struct {
	api.Changes
	id      api.SessionID
	at      changesAt
	files   []diffFile // of this page
	drafts  []api.ReviewComment
	astray  []api.ReviewComment // those that stand at none of the files on the page
	form    *reviewForm         // the open one
	reviews bool                // the reader may comment
	sending filled              // what was typed when they were to be sent, and refused
}

// diffFile is a file with what the page shows of its diff.
type diffFile struct {
	api.ChangedFile
	n     int // its place in the list
	rows  []diffRow
	of    int  // how many rows there are
	from  int  // the first of rows among them
	shown bool // its rows are on the page
	said  []api.ReviewComment
	form  *reviewForm
	alone bool // it has the page to itself
}

// diffRow is a line of a diff with what is said about it.
type diffRow struct {
	api.PatchRow
	said []api.ReviewComment
	form *reviewForm
}

// is reports whether a comment is about this line.
func (r diffRow) is(side api.ReviewSide, line int64) bool {
	if side == api.SideOld {
		return line > 0 && r.Old == line
	}
	return line > 0 && r.New == line
}

// reviewForm writes a comment on a line, a file, or all of it.
type reviewForm struct {
	filled
	path string
	line int64
	side api.ReviewSide
}

// readReviewForm is the form that an address asks for; nil if it asks for none.
func readReviewForm(q url.Values) *reviewForm {
	if !q.Has("comment") {
		return nil
	}
	line, _ := strconv.ParseInt(q.Get("line"), 10, 64)
	return newReviewForm(q.Get("comment"), line, api.ReviewSide(q.Get("side")), filled{typed: url.Values{}})
}

func newReviewForm(path string, line int64, side api.ReviewSide, f filled) *reviewForm {
	if side != api.SideOld {
		side = api.SideNew
	}
	if line < 0 || path == "" {
		line = 0
	}
	return &reviewForm{filled: f, path: path, line: line, side: side}
}

// readChanges reads the changes and lays them out for a page.
func (v *visit) readChanges(p *sessionPage) error {
	c := &p.changes
	var err error
	if c.Changes, err = v.web.engine.Changes(v.r.Context(), v.caller, p.Session.ID); err != nil {
		return err
	}
	c.id, c.reviews = p.Session.ID, p.maySay()
	if c.reviews {
		list, err := v.web.engine.Review(v.r.Context(), v.caller, c.id)
		if err != nil {
			return err
		}
		c.drafts = list.Items
	} else {
		c.form = nil
	}
	c.lay()
	return nil
}

// lay chooses the files and rows of the page, and puts comments where they belong.
func (c *changesView) lay() {
	index := func(path string) int {
		return slices.IndexFunc(c.Files, func(f api.ChangedFile) bool { return f.Path == path })
	}
	if c.form != nil && c.form.path != "" && c.at.file == "" {
		if i := index(c.form.path); i >= 0 {
			c.at.from = i / filesOnPage * filesOnPage
		}
	}
	if i := index(c.at.file); c.at.file != "" && i >= 0 {
		c.layAlone(i)
	} else {
		c.at.file, c.at.row = "", 0
		c.layAll()
	}
	for _, d := range c.drafts {
		if !slices.ContainsFunc(c.files, func(f diffFile) bool { return f.Path == d.Path }) {
			c.astray = append(c.astray, d)
		}
	}
}

func (c *changesView) layAll() {
	if c.at.from >= len(c.Files) {
		c.at.from = 0
	}
	left := rowsDrawn
	for i, f := range c.Files[c.at.from:min(len(c.Files), c.at.from+filesOnPage)] {
		file := c.file(c.at.from + i)
		file.shown = len(file.rows) <= left
		if !file.shown && c.form != nil && c.form.path == f.Path && c.form.line > 0 {
			c.at = changesAt{file: f.Path}
			c.files = nil
			c.layAlone(file.n)
			return
		}
		if file.shown {
			left -= len(file.rows)
		} else {
			file.rows = nil
		}
		c.files = append(c.files, file)
	}
	for i := range c.files {
		c.place(&c.files[i])
	}
}

// layAlone gives one file the page, from the row with the commented line on if one is meant.
func (c *changesView) layAlone(i int) {
	file := c.file(i)
	file.shown, file.alone = true, true
	if c.form != nil && c.form.path == file.Path {
		if at := slices.IndexFunc(file.rows, func(r diffRow) bool { return r.is(c.form.side, c.form.line) }); at >= 0 {
			c.at.row = at / rowsOfFile * rowsOfFile
		}
	}
	if c.at.row >= len(file.rows) {
		c.at.row = 0
	}
	file.from = c.at.row
	file.rows = file.rows[c.at.row:min(len(file.rows), c.at.row+rowsOfFile)]
	c.place(&file)
	c.files = []diffFile{file}
}

// file reads a file's diff.
func (c *changesView) file(i int) diffFile {
	f := diffFile{ChangedFile: c.Files[i], n: i}
	for _, r := range api.PatchRows(f.Patch) {
		f.rows = append(f.rows, diffRow{PatchRow: r})
	}
	f.of = len(f.rows)
	return f
}

// place puts comments and the open form under their lines; those whose line isn't there stand at
// the file.
func (c *changesView) place(f *diffFile) {
	row := func(side api.ReviewSide, line int64) int {
		return slices.IndexFunc(f.rows, func(r diffRow) bool { return r.is(side, line) })
	}
	for _, d := range c.drafts {
		if d.Path != f.Path {
			continue
		}
		if at := row(d.Side, d.Line); at >= 0 {
			f.rows[at].said = append(f.rows[at].said, d)
		} else {
			f.said = append(f.said, d)
		}
	}
	if c.form == nil || c.form.path != f.Path {
		return
	}
	if at := row(c.form.side, c.form.line); at >= 0 {
		f.rows[at].form = c.form
	} else {
		f.form = c.form
	}
}

// comment keeps a comment that is not sent yet, and leads back to where it stands.
func (v *visit) comment() error {
	id, err := v.sessionID()
	if err != nil {
		return err
	}
	form := v.r.PostForm
	in := api.ReviewInput{Path: form.Get("path"), Side: api.ReviewSide(form.Get("side")), Text: lines(form.Get("text"))}
	if text := form.Get("line"); text != "" {
		if in.Line, err = strconv.ParseInt(text, 10, 64); err != nil {
			err = api.BadField("line", "must be a whole number")
		}
	}
	var made api.ReviewComment
	if err == nil {
		made, err = v.web.engine.CommentOnChanges(v.r.Context(), v.caller, id, in)
	}
	if err != nil {
		return v.again(err, "text", func(p *sessionPage, f filled) { p.changes.form = newReviewForm(in.Path, in.Line, in.Side, f) })
	}
	return v.to(readChangesAt(form).url(id)+"#"+made.ID.String(), "")
}

// again draws the changes with a form that was refused: what is wrong stands at its fields, and
// what concerns none of them at one. What no form can mend is the error that it was.
func (v *visit) again(refused error, field string, fill func(p *sessionPage, f filled)) error {
	f := failureOf(refused)
	bad, ok := fieldErrors(refused)
	switch {
	case ok:
	case f.status == http.StatusConflict || f.status == http.StatusUnprocessableEntity:
		bad = map[string]string{field: f.text}
	default:
		return refused
	}
	p := sessionPage{changes: changesView{at: readChangesAt(v.r.PostForm)}}
	fill(&p, filled{v.r.PostForm, bad})
	return v.drawView(f.status, "changes", p)
}

func (v *visit) dropComment() error {
	id, err := v.sessionID()
	if err != nil {
		return err
	}
	var comment api.ReviewID
	if comment.UnmarshalText([]byte(v.path("comment"))) != nil {
		return api.Refuse(api.CodeNotFound, "There is no such comment here.")
	}
	if err := v.web.engine.DropComment(v.r.Context(), v.caller, id, comment); err != nil {
		return err
	}
	return v.to(readChangesAt(v.r.PostForm).url(id), "Removed the comment")
}

// sendReview sends the reader's comments to the agent and leads to the conversation.
func (v *visit) sendReview() error {
	id, err := v.sessionID()
	if err != nil {
		return err
	}
	posted, err := v.web.engine.SendReview(v.r.Context(), v.caller, id, api.ReviewSend{Text: lines(v.r.PostForm.Get("text"))})
	if err != nil {
		return v.again(err, "text", func(p *sessionPage, f filled) { p.changes.sending = f })
	}
	return v.to(sessionURL(posted.Session.ID), "Sent your comments to the agent")
}

// land asks the worker to do something with the changes.
func (v *visit) land() error {
	id, err := v.sessionID()
	if err != nil {
		return err
	}
	form := v.r.PostForm
	in := api.LandInput{Verb: api.LandVerb(form.Get("verb")), Message: lines(form.Get("message")), Confirm: form.Get("confirm")}
	if in.Verb == api.VerbMerge {
		in.Method = api.MergeMethod(form.Get("method"))
	}
	if in.Verb == "" { // sent by a key, which presses no button
		err = api.BadField("verb", "is missing: press one of the buttons")
	} else {
		_, err = v.web.engine.RequestLanding(v.r.Context(), v.caller, id, in)
	}
	if err != nil {
		return v.again(err, "message", func(p *sessionPage, f filled) { p.asked = f })
	}
	return v.to(changesAt{}.url(id), "Asked the worker to "+landDo(in.Verb, in.Confirm != ""))
}

func (v *visit) withdrawLanding() error {
	id, err := v.sessionID()
	if err != nil {
		return err
	}
	var asked api.LandingID
	if asked.UnmarshalText([]byte(v.path("landing"))) != nil {
		return api.Refuse(api.CodeNotFound, "There is no such request here.")
	}
	if _, err := v.web.engine.WithdrawLanding(v.r.Context(), v.caller, id, asked); err != nil {
		return err
	}
	return v.to(changesAt{}.url(id), "Took the request back")
}

// mayLand reports whether the reader may have the session's changes landed, as far as their
// rights go: the session of somebody else's local agent is none that they see.
func (p sessionPage) mayLand() bool {
	if p.Session.Mode == api.Cloud {
		return p.by.Can(account.LandAny)
	}
	return p.by.Can(account.LandOwn)
}

// changesParts are what a live update draws of the changes. The diffs stay as the reader has them.
func changesParts(p sessionPage, snapshot string) []part {
	return []part{
		{target: "changes-state", draw: changesState(p)},
		{target: "landing", draw: landPanel(p)},
		{target: "newer", draw: changesNewer(p, snapshot)},
	}
}

// snapshotOf names the files that a page shows.
func snapshotOf(view engine.SessionPage) string {
	if view.Changes == nil {
		return ""
	}
	return view.Changes.Snapshot
}

// requester names who asked for a landing.
func (p sessionPage) requester(l *api.Landing) string {
	if l.RequestedBy == p.by.UserID {
		return "you"
	}
	return cmp.Or(l.RequestedName, "somebody")
}
