package web

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
	"stint/engine"
)

// sessionPage is what session.templ draws.
type sessionPage struct {
	engine.SessionPage
	by      engine.Caller
	view    string // transcript, output, changes, timeline, input, json
	log     Log
	talk    talkView
	changes changesView
	json    string
	answer  answerForm // the refused one
	asked   filled     // the refused request to land
	sayKey  string     // makes a second press of the button count as the same message
	zone    *time.Location
}

type sessionTab struct{ key, word string }

var (
	commandTabs = []sessionTab{{"output", "Output"}, {"timeline", "Timeline"}, {"input", "Input"}, {"json", "JSON"}}
	talkTabs    = []sessionTab{{"transcript", "Transcript"}, {"output", "Log"}, {"timeline", "Timeline"}, {"input", "Input"}, {"json", "JSON"}}
)

// tabs are the views of the session; the first is what its page opens with.
func (p sessionPage) tabs() []sessionTab {
	tabs, at := commandTabs, 1
	if p.conversed() {
		tabs, at = talkTabs, 2
	}
	if p.Changes != nil {
		return slices.Insert(slices.Clone(tabs), at, sessionTab{"changes", "Changes"})
	}
	return tabs
}

func (v *visit) session() error {
	q := v.r.URL.Query()
	return v.drawView(http.StatusOK, q.Get("view"), sessionPage{changes: changesView{at: readChangesAt(q), form: readReviewForm(q)}})
}

func (v *visit) drawSession(status int, answer answerForm) error {
	return v.drawView(status, v.r.URL.Query().Get("view"), sessionPage{answer: answer})
}

// drawView draws one of the views of a session. p has the forms that are open or were refused.
func (v *visit) drawView(status int, name string, p sessionPage) error {
	id, err := v.sessionID()
	if err != nil {
		return err
	}
	view, err := v.web.engine.SessionPageOf(v.r.Context(), v.caller, id)
	if err != nil {
		return err
	}
	p.SessionPage, p.by, p.sayKey, p.zone = view, v.caller, rand.Text(), v.prefs.zone
	if key := p.answer.typed.Get("key"); key != "" {
		p.sayKey = key
	}
	p.view = p.tabs()[0].key
	for _, known := range p.tabs() {
		if name == known.key {
			p.view = known.key
		}
	}
	at := position{seq: view.Seq}
	var before int64
	if text := v.r.URL.Query().Get("before"); text != "" {
		if before, err = strconv.ParseInt(text, 10, 64); err != nil || before < 1 {
			var bad api.Invalid
			bad.Add("before", "must be a whole number from 1, as the page's own links have it")
			return bad.Err()
		}
	}
	switch p.view {
	case "transcript":
		if p.talk, at.item, err = v.readTalk(v.r.Context(), view, before); err != nil {
			return err
		}
	case "output":
		if p.log, at.item, err = v.readLog(v.r.Context(), view, before); err != nil {
			return err
		}
	case "changes":
		if err := v.readChanges(&p); err != nil {
			return err
		}
	case "json":
		text, err := json.Marshal(view.Session.Session, jsontext.WithIndent("  "))
		if err != nil {
			return fmt.Errorf("write session %s as JSON: %w", id, err)
		}
		p.json = string(text)
	}
	shell := Shell{
		Talk: true, Changes: p.view == "changes", Title: titleOf(view.Session.Session) + " · " + StatusWord(view.Session.Status), Place: "sessions", Now: view.At,
		Stream: streamFrom("session", at.String(), p.followed(id)...),
	}
	return v.page(status, shell, session(p))
}

// followed are the parameters of the page's live stream.
func (p sessionPage) followed(id api.SessionID) []string {
	out := []string{"id", id.String(), "view", p.view}
	if p.view == "changes" {
		out = append(out, "snapshot", p.Changes.Snapshot)
	}
	return out
}

// watchSession draws the parts of a session's page again, and appends output.
func (v *visit) watchSession(q url.Values, at position) (watch watcher, woken func() (<-chan struct{}, func()), stop func(), err error) {
	id, err := api.ParseSessionID(q.Get("id"))
	if err != nil || id == 0 {
		return nil, nil, nil, api.Refuse(api.CodeNotFound, "There is no such session here.")
	}
	var tail interface {
		read(context.Context, engine.Caller, engine.SessionPage) ([]part, error)
		at() int64
	}
	switch q.Get("view") {
	case "output":
		tail, err = v.openTail(v.r.Context(), id, at.item)
	case "transcript":
		tail, err = v.openTalk(v.r.Context(), id, at.item)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	if tail != nil {
		woken = func() (<-chan struct{}, func()) { return v.web.engine.ItemsChanged(id) }
	}
	watch = func(ctx context.Context, c engine.Caller) ([]part, position, error) {
		view, err := v.web.engine.SessionPageOf(ctx, c, id)
		if err != nil {
			return nil, position{}, err
		}
		p := sessionPage{SessionPage: view, by: c, view: q.Get("view"), zone: v.prefs.zone}
		parts := []part{
			{target: "session-head", draw: sessionHead(p)},
			{target: "session-notices", draw: sessionNotices(p)},
			{target: "session-tabs", draw: sessionTabs(p)},
			{target: "session-answer", draw: sessionAnswer(p)},
			{target: "session-aside", draw: sessionAside(p)},
		}
		if p.maySay() && p.view != "changes" {
			parts = append(parts, part{target: "say-hint", draw: sayHint(p)})
		}
		now := position{seq: view.Seq}
		switch {
		case p.view == "timeline":
			parts = append(parts, part{target: "timeline", draw: timeline(p)})
		case p.view == "changes" && p.Changes != nil:
			parts = append(parts, changesParts(p, q.Get("snapshot"))...)
		case tail != nil:
			more, err := tail.read(ctx, c, view)
			if err != nil {
				return nil, position{}, err
			}
			parts = append(parts, more...)
			now.item = tail.at()
		}
		return parts, now, nil
	}
	return watch, woken, nil, nil
}

// output returns the whole output as plain text, page by page, however long it is.
func (v *visit) output() error {
	id, err := v.sessionID()
	if err != nil {
		return err
	}
	s, err := v.web.engine.Session(v.r.Context(), v.caller, id)
	if err != nil {
		return err
	}
	v.Header().Set("Content-Type", "text/plain; charset=utf-8")
	v.Header().Set("Content-Disposition", `attachment; filename="`+s.AgentSlug+"-"+id.String()+`.txt"`)
	var after int64
	for {
		items, last, err := v.web.engine.Items(v.r.Context(), v.caller, id, after, itemPage)
		if err != nil {
			return err
		}
		for _, it := range items {
			if it.Kind != api.ItemText {
				continue
			}
			if _, err := io.WriteString(v, PlainText(whole(it, it.Text))); err != nil {
				return nil // the reader went away
			}
		}
		if len(items) == 0 || items[len(items)-1].Seq >= last {
			return nil
		}
		after = items[len(items)-1].Seq
	}
}

func (v *visit) askSession() error {
	id, err := v.sessionID()
	if err != nil {
		return err
	}
	s, err := v.web.engine.Session(v.r.Context(), v.caller, id)
	if err != nil {
		return err
	}
	if err := v.refuse(v.caller.CanCancel(s), "Whoever started the session, or an admin, ends it"); err != nil {
		return err
	}
	c := cancelQuestion(s)
	if v.path("verb") == "stop" {
		c = stopQuestion(s)
	}
	return v.page(http.StatusOK, Shell{Title: c.Title, Place: "sessions"}, confirmPage(c))
}

func (v *visit) actSession() error {
	id, err := v.sessionID()
	if err != nil {
		return err
	}
	ctx, eng, back := v.r.Context(), v.web.engine, v.backFrom(id)
	switch v.path("verb") {
	case "cancel":
		done, err := eng.CancelSession(ctx, v.caller, id, api.CancelInput{Reason: strings.TrimSpace(v.r.PostForm.Get("reason"))})
		if err != nil {
			return err
		}
		return v.to(back, said(done.Changed, "Cancelled", "It was already cancelled"))
	case "stop":
		done, err := eng.StopSession(ctx, v.caller, id)
		if err != nil {
			return err
		}
		return v.to(back, said(done.Changed, "It was asked to stop", "It had been asked to stop already"))
	case "archive":
		done, err := eng.ArchiveSession(ctx, v.caller, id)
		if err != nil {
			return err
		}
		return v.to(back, said(done.Changed, "Archived", "It was already archived"))
	case "keep", "release":
		keep := v.path("verb") == "keep"
		done, err := eng.KeepSession(ctx, v.caller, id, keep)
		if err != nil {
			return err
		}
		if keep {
			return v.to(back, said(done.Changed, "It is kept, however old it gets", "It was already kept"))
		}
		return v.to(back, said(done.Changed, "It is removed once it is old", "It wasn't kept"))
	default:
		s, err := eng.RetrySession(ctx, v.caller, id)
		if err != nil {
			return err
		}
		return v.to(sessionURL(s.ID), retriedWords(id, s))
	}
}

func retriedWords(id api.SessionID, r api.Retried) string {
	if !r.Changed {
		return "It was already retried. This is that attempt"
	}
	return said(r.ID == id, "Queued again", "This is the new attempt")
}

func said(changed bool, now, before string) string {
	if changed {
		return now
	}
	return before
}

// shownResult is how much of the result the page shows.
func (p sessionPage) shownResult() string {
	if len(p.Session.Result) <= markdownText {
		return p.Session.Result
	}
	return strings.ToValidUTF8(p.Session.Result[:markdownText], "")
}
