package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// The members of a note in a message's data.
const (
	noteCause = "cause"
	noteTitle = "title"
	noteText  = "text"
	notePath  = "path"

	maxNoteDetails = 500 // bytes of a question or an error in a note
	promptCause    = "prompt-"
	findingCause   = "finding-" // and the number of the event that told of it
)

// Note is what a channel tells a person.
type Note struct {
	Cause api.Cause `json:"cause"` // empty in a test
	Title string    `json:"title"`
	Text  string    `json:"text"`
	Path  string    `json:"path"` // of the page that it is about, below the dashboard's address
}

// noteOf reads the note of a message; an empty one when there is none.
func noteOf(body string) Note {
	var m struct {
		Data Note `json:"data"`
	}
	if json.Unmarshal([]byte(body), &m) != nil {
		return Note{}
	}
	return m.Data
}

// noted is a note with what makes it told once.
type noted struct {
	Note
	key string // of the cause: a channel has one message with it
}

// tellEvent makes the message of an event that a channel tells of.
func (e *Engine) tellEvent(tx *db.Tx, w *queries.Webhook, ev api.Event) error {
	notes, err := e.notesOf(tx, w, ev)
	if err != nil {
		return err
	}
	for _, n := range notes {
		if !slices.Contains(w.Causes, string(n.Cause)) {
			continue
		}
		_, err := tx.ToldOf(tx.Context(), queries.ToldOfParams{WebhookID: w.ID, Cause: n.key})
		if err == nil {
			continue
		}
		if !db.None(err) {
			return fmt.Errorf("look whether channel %s told of %s: %w", api.ChannelID(w.ID), n.key, err)
		}
		about := api.Event{Seq: ev.Seq, At: ev.At, Actor: ev.Actor, AgentID: ev.AgentID, SessionID: ev.SessionID, Data: api.EventData{
			noteCause: string(n.Cause), noteTitle: n.Title, noteText: n.Text, notePath: n.Path,
		}}
		id := "note-" + strconv.FormatInt(ev.Seq, 10) + "-" + string(n.Cause)
		if err := e.putNote(tx, w, 0, message(w.WorkspaceID, about, messageType(ev.Type), id), n); err != nil {
			return err
		}
	}
	return nil
}

// notesOf decides what an event means to people. Failures are counted for each channel by what
// its readers may know, also those that it doesn't tell of.
func (e *Engine) notesOf(tx *db.Tx, w *queries.Webhook, ev api.Event) ([]noted, error) {
	switch ev.Type {
	case api.EventAwaitingInput:
		return e.questionNote(tx, w, ev)
	case api.EventSessionError:
		return e.failureNotes(tx, w, ev)
	case api.EventSessionComplete:
		outcome, _ := ev.Data["outcome"].(string)
		if outcome == api.OutcomeStopped || api.Marked(outcome) { // the others are words of the agent's
			return nil, nil // that says nothing about the agent
		}
		return e.recoveryNote(tx, w, ev)
	case api.EventAgentPaused:
		if ev.Actor != api.ActorSystem {
			return nil, nil
		}
		return e.pausedNote(tx, ev)
	case api.EventFindingOpened:
		return e.findingNotes(tx, w, ev)
	case api.EventFindingClosed:
		return e.mendedNotes(tx, w, ev)
	}
	return nil, nil
}

// questionNote tells of a question, unless it has been closed since.
func (e *Engine) questionNote(tx *db.Tx, w *queries.Webhook, ev api.Event) ([]noted, error) {
	id, ok := idNamed(ev.Data["prompt"], api.ParsePromptID)
	if !ok {
		return nil, nil
	}
	p, err := tx.Prompt(tx.Context(), id)
	if db.None(err) || (err == nil && p.ClosedAt != 0) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read prompt %s: %w", id, err)
	}
	slug, err := slugOf(tx, ev.AgentID)
	if err != nil {
		return nil, err
	}
	text := "A question waits for an answer."
	if w.Details != 0 {
		text += "\n\n" + detailOf(p.Text)
	}
	return []noted{{Note{api.CauseNeedsYou, slug + " needs you", text, sessionPath(ev.SessionID)}, promptCause + id.String()}}, nil
}

// failureNotes tells of an agent's first failure in a row, and of as many as pause a scheduled
// agent. One that they did pause is told by the event of that instead.
func (e *Engine) failureNotes(tx *db.Tx, w *queries.Webhook, ev api.Event) ([]noted, error) {
	if ev.Data[dataCode] == codeSpendLimit && slices.Contains(w.Causes, string(api.CauseSpendLimit)) {
		return limitNote(tx, ev)
	}
	before, err := streakOf(tx, w.ID, ev.AgentID)
	if err != nil {
		return nil, err
	}
	n := before + 1
	if err := tx.SetFailureStreak(tx.Context(), queries.SetFailureStreakParams{WebhookID: w.ID, AgentID: ev.AgentID, Failures: n}); err != nil {
		return nil, fmt.Errorf("count a failure of agent %s: %w", ev.AgentID, err)
	}
	if n != 1 && n != e.cfg.AutoPauseAfter {
		return nil, nil
	}
	a, err := agentEvenDeleted(tx.Context(), tx, ev.AgentID)
	if err != nil {
		return nil, fmt.Errorf("read agent %s: %w", ev.AgentID, err)
	}
	text := "A run ended in error."
	if w.Details != 0 {
		s, err := tx.Session(tx.Context(), ev.SessionID)
		if err != nil && !db.None(err) {
			return nil, fmt.Errorf("read session %s: %w", ev.SessionID, err)
		}
		text += "\n\n" + detailOf(strings.TrimSpace(s.ErrorCode+"\n"+s.ErrorMessage))
	}
	var out []noted
	if n == 1 {
		out = append(out, noted{Note{api.CauseFailed, a.Slug + " failed", text, sessionPath(ev.SessionID)}, "failed-" + ev.SessionID.String()})
	}
	if n == e.cfg.AutoPauseAfter && a.Paused == 0 {
		title := fmt.Sprintf("%s failed %d times in a row", a.Slug, n)
		out = append(out, noted{Note{api.CauseFailing, title, text, sessionPath(ev.SessionID)}, "failing-" + ev.SessionID.String()})
	}
	return out, nil
}

// limitNote tells of a run that was ended because of what one may cost. That it was ended
// because of the agent's day is told by the finding, once for all runs. Neither is a failure of
// the agent's.
func limitNote(tx *db.Tx, ev api.Event) ([]noted, error) {
	a, err := agentEvenDeleted(tx.Context(), tx, ev.AgentID)
	if err != nil {
		return nil, fmt.Errorf("read agent %s: %w", ev.AgentID, err)
	}
	if spentAll(&a, db.Micros(tx.Now)) {
		return nil, nil
	}
	text := "A run was ended: it cost what the agent allows for one."
	return []noted{{Note{api.CauseSpendLimit, a.Slug + " reached its spend limit", text, sessionPath(ev.SessionID)}, "spent-" + ev.SessionID.String()}}, nil
}

func (e *Engine) recoveryNote(tx *db.Tx, w *queries.Webhook, ev api.Event) ([]noted, error) {
	n, err := streakOf(tx, w.ID, ev.AgentID)
	if err != nil || n == 0 {
		return nil, err
	}
	if _, err := tx.EndFailureStreak(tx.Context(), queries.EndFailureStreakParams{WebhookID: w.ID, AgentID: ev.AgentID}); err != nil {
		return nil, fmt.Errorf("forget the failures of agent %s: %w", ev.AgentID, err)
	}
	slug, err := slugOf(tx, ev.AgentID)
	if err != nil {
		return nil, err
	}
	text := "A run succeeded after a failure."
	if n > 1 {
		text = fmt.Sprintf("A run succeeded after %d failures in a row.", n)
	}
	return []noted{{Note{api.CauseRecovered, slug + " works again", text, sessionPath(ev.SessionID)}, "recovered-" + ev.SessionID.String()}}, nil
}

func (e *Engine) pausedNote(tx *db.Tx, ev api.Event) ([]noted, error) {
	a, err := agentEvenDeleted(tx.Context(), tx, ev.AgentID)
	if err != nil {
		return nil, fmt.Errorf("read agent %s: %w", ev.AgentID, err)
	}
	text := fmt.Sprintf("%d scheduled runs in a row ended in error; no more are started until somebody resumes it.", max(a.FailuresInRow, e.cfg.AutoPauseAfter))
	return []noted{{Note{api.CauseFailing, a.Slug + " is paused", text, "/agents/" + a.Slug}, "paused-" + strconv.FormatInt(ev.Seq, 10)}}, nil
}

func streakOf(tx *db.Tx, id api.WebhookID, agent api.AgentID) (int64, error) {
	n, err := tx.FailureStreak(tx.Context(), queries.FailureStreakParams{WebhookID: id, AgentID: agent})
	if err != nil && !db.None(err) {
		return 0, fmt.Errorf("read the failures of agent %s: %w", agent, err)
	}
	return n, nil
}

func slugOf(tx *db.Tx, id api.AgentID) (string, error) {
	a, err := agentEvenDeleted(tx.Context(), tx, id)
	if err != nil {
		return "", fmt.Errorf("read agent %s: %w", id, err)
	}
	return a.Slug, nil
}

func sessionPath(id api.SessionID) string { return "/sessions/" + id.String() }

// detailOf is the beginning of what an agent wrote.
func detailOf(text string) string {
	if cut := api.CutAt(text, maxNoteDetails); cut != text {
		return cut + " …"
	}
	return text
}

// settled says why a message needs no telling any more, "" when it does: nobody is called to a
// question that has been closed, or to trouble that is over.
func settled(tx *db.Tx, d *queries.Delivery) (string, error) {
	if text, ok := strings.CutPrefix(d.Cause, findingCause); ok {
		seq, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return "", fmt.Errorf("read the cause of delivery %s: %w", d.ID, err)
		}
		if over, err := findingOver(tx, seq); err != nil || !over {
			return "", err
		}
		return "not sent: it was over before", nil
	}
	text, ok := strings.CutPrefix(d.Cause, promptCause)
	if !ok {
		return "", nil
	}
	id, err := api.ParsePromptID(text)
	if err != nil {
		return "", fmt.Errorf("read the cause of delivery %s: %w", d.ID, err)
	}
	p, err := tx.Prompt(tx.Context(), id)
	if err != nil && !db.None(err) {
		return "", fmt.Errorf("read prompt %s: %w", id, err)
	}
	if err == nil && p.ClosedAt == 0 {
		return "", nil
	}
	return "not sent: the question was closed before", nil
}

// outOfReach says why a message may not be told any more, "" when it may: it waited, as for a
// digest, and its reader is no admin now, who alone learn of the coordinator's own trouble. What
// else a reader loses the sight of takes the channel with it.
func outOfReach(tx *db.Tx, w *queries.Webhook, d *queries.Delivery) (string, error) {
	if !ofHouseNote(d) {
		return "", nil
	}
	reader, err := readerOf(tx, w)
	if err != nil || reader.caller.Can(account.Audit) {
		return "", err
	}
	return "not sent: it is for admins, and its reader is none any more", nil
}

// ofHouseNote reports whether a channel's message tells of the coordinator itself: a finding
// about no agent.
func ofHouseNote(d *queries.Delivery) bool {
	if d.Type != messageType(api.EventFindingOpened) && d.Type != messageType(api.EventFindingClosed) {
		return false
	}
	var m struct {
		Data struct {
			Agent string `json:"agentId"`
		} `json:"data"`
	}
	return json.Unmarshal([]byte(d.Body), &m) != nil || m.Data.Agent == ""
}

// readerOf is who learns what a webhook or channel tells: one user with their present role, or
// of a workspace's channel an admin who owns no local session.
func readerOf(tx *db.Tx, w *queries.Webhook) (*visibility, error) {
	if w.Scope == api.ScopeWorkspace {
		return newVisibility(tx, Caller{WorkspaceID: w.WorkspaceID, Role: api.Admin}), nil
	}
	return webhookVisibility(tx.Context(), tx, w.WorkspaceID, w.CreatedBy)
}

// mayHold reports whether a role suffices to have a webhook or channel.
func mayHold(role api.Role, scope api.ChannelScope) bool {
	if scope == api.ScopePerson {
		return role.AtLeast(account.HaveChannels.Role())
	}
	return role.AtLeast(account.ManageWebhooks.Role())
}
