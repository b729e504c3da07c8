package engine

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// A channel is a webhook whose receiver is a person: it reads the same log and its messages
// are deliveries, tried again and given up by the same rules. What differs is what a message
// says (channel_notes.go) and how it is sent.

// DefaultChannel is what a creation starts from.
func DefaultChannel() api.ChannelInput {
	return api.ChannelInput{Scope: api.ScopePerson, Causes: api.DefaultCauses(), Enabled: true}
}

// mayHaveChannel refuses who may not have a channel of a scope: everybody may be told what
// they may see; what a whole workspace is told is up to its admins.
func mayHaveChannel(c Caller, scope api.ChannelScope) error {
	if scope == api.ScopeWorkspace {
		return c.May(account.ManageWebhooks)
	}
	return c.May(account.HaveChannels)
}

// CreateChannel creates a channel that tells what happens from now on. Rights: everybody for
// themselves, admins for the workspace. Errors: forbidden, invalid.
func (e *Engine) CreateChannel(ctx context.Context, c Caller, in api.ChannelInput) (out api.Channel, err error) {
	if err := mayHaveChannel(c, in.Scope); err != nil {
		return out, err
	}
	in.Causes = in.Causes.Normal()
	target, err := e.checkChannel(&in)
	if err != nil {
		return out, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		w := queries.Webhook{
			ID: api.WebhookID(tx.NewID()), WorkspaceID: c.WorkspaceID, Url: in.URL, Description: in.Description, Types: api.Labels{},
			Secret: []byte{}, OldSecret: []byte{}, Enabled: db.Flag(in.Enabled), CreatedBy: c.UserID, CreatedAt: db.Micros(tx.Now),
			Scope: in.Scope, Target: target, Causes: in.Causes, Details: db.Flag(in.Details),
			QuietFrom: in.QuietFrom, QuietTo: in.QuietTo, DigestAt: in.DigestAt, TimeZone: in.TimeZone,
		}
		seq, err := e.logChannel(tx, &w, c.Actor(), api.EventChannelCreated, nil)
		if err != nil {
			return err
		}
		w.AfterSeq = seq
		if err := tx.InsertWebhook(tx.Context(), queries.InsertWebhookParams(w)); err != nil {
			return fmt.Errorf("insert a channel: %w", err)
		}
		out = toChannel(&w)
		return nil
	})
	return out, err
}

func (e *Engine) logChannel(tx *db.Tx, w *queries.Webhook, actor, kind string, data api.EventData) (int64, error) {
	if data == nil {
		data = api.EventData{}
	}
	data["channel"] = api.ChannelID(w.ID).String()
	return tx.LogNumbered(db.Event{Workspace: w.WorkspaceID, Actor: actor, Type: kind, Data: data})
}

// checkChannel returns what may be shown of the address, "" when there is none, and writes the
// times as they are stored.
func (e *Engine) checkChannel(in *api.ChannelInput) (target string, err error) {
	var v api.Invalid
	switch {
	case in.URL == "":
		v.Add("url", "is missing: name the address of the service, such as ntfy://ntfy.sh/TOPIC")
	case len(in.URL) > maxWebhookURL:
		v.Add("url", fmt.Sprintf("has %d bytes; at most %d fit", len(in.URL), maxWebhookURL))
	default:
		if target, err = e.cfg.CheckChannelURL(in.URL); err != nil {
			v.Add("url", err.Error())
		}
	}
	if n := utf8.RuneCountInString(in.Description); n > maxWebhookText {
		v.Add("description", fmt.Sprintf("has %d characters; at most %d fit", n, maxWebhookText))
	}
	if in.Scope != api.ScopePerson && in.Scope != api.ScopeWorkspace {
		v.Add("scope", "must be person or workspace")
	}
	if len(in.Causes) == 0 {
		v.Add("causes", "is empty: name at least one, or disable the channel")
	}
	for _, name := range in.Causes {
		if !slices.ContainsFunc(api.Causes, func(c api.CauseWords) bool { return string(c.Cause) == name }) {
			v.Add("causes", fmt.Sprintf("%q is none of %s", name, causeNames()))
			break
		}
	}
	checkTimes(&v, in, e.Now())
	return target, v.Err()
}

func causeNames() string {
	names := make([]string, len(api.Causes))
	for i, c := range api.Causes {
		names[i] = string(c.Cause)
	}
	return strings.Join(names, ", ")
}

// channelOf reads a channel that the caller may have: their own, or one of the workspace. One
// of somebody else doesn't exist for them.
func channelOf(ctx context.Context, q queries.Querier, c Caller, id api.ChannelID) (*queries.Webhook, error) {
	if err := c.May(account.HaveChannels); err != nil {
		return nil, err
	}
	w, err := q.Webhook(ctx, api.WebhookID(id))
	if db.None(err) || (err == nil && !seesChannel(c, &w)) {
		return nil, db.NotFound("channel")
	}
	if err != nil {
		return nil, fmt.Errorf("read channel %s: %w", id, err)
	}
	return &w, nil
}

// seesChannel reports whether the caller may look at a channel.
func seesChannel(c Caller, w *queries.Webhook) bool {
	switch {
	case w.WorkspaceID != c.WorkspaceID:
		return false
	case w.Scope == api.ScopePerson:
		return w.CreatedBy == c.UserID && c.Can(account.HaveChannels)
	}
	return w.Scope == api.ScopeWorkspace && c.Can(account.ManageWebhooks)
}

// Channel returns one, without its address. Errors: not_found.
func (e *Engine) Channel(ctx context.Context, c Caller, id api.ChannelID) (out api.Channel, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		w, err := channelOf(ctx, tx, c, id)
		if err != nil {
			return err
		}
		out = toChannel(w)
		return nil
	})
	return out, err
}

// Channels lists the caller's own, and for admins the workspace's, newest first.
func (e *Engine) Channels(ctx context.Context, c Caller, page api.Page) (api.List[api.Channel], error) {
	out := api.List[api.Channel]{Items: []api.Channel{}}
	if err := c.May(account.HaveChannels); err != nil {
		return out, err
	}
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		rows, err := tx.ListChannels(ctx, queries.ListChannelsParams{
			WorkspaceID: c.WorkspaceID, Before: api.WebhookID(before), Me: c.UserID, MayAll: db.Flag(c.CanManageWebhooks()), N: n + 1,
		})
		out = db.ListOf(rows, n, func(w queries.Webhook) api.Channel { return toChannel(&w) }, func(w queries.Webhook) int64 { return int64(w.ID) })
		return err
	})
	return out, err
}

// EditChannel changes what edit changes; an empty URL leaves the address. Enabling a channel
// starts with what happens from now on. Errors: not_found, invalid.
func (e *Engine) EditChannel(ctx context.Context, c Caller, id api.ChannelID, edit func(in *api.ChannelInput) error) (out api.Channel, err error) {
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		w, err := channelOf(tx.Context(), tx, c, id)
		if err != nil {
			return err
		}
		in := toChannel(w).ChannelInput
		in.Causes = slices.Clone(in.Causes)
		if err := edit(&in); err != nil {
			return err
		}
		in.Causes, in.URL = in.Causes.Normal(), cmp.Or(in.URL, w.Url)
		target, err := e.checkChannel(&in)
		if err != nil {
			return err
		}
		if in.Scope != w.Scope {
			var v api.Invalid
			v.Add("scope", "can't be changed: make another channel")
			return v.Err()
		}
		seq, err := e.logChannel(tx, w, c.Actor(), api.EventChannelEdited, nil)
		if err != nil {
			return err
		}
		if in.Enabled && w.Enabled == 0 {
			w.AfterSeq, w.DisabledReason = seq, ""
			if _, err := tx.EndFailureStreaks(tx.Context(), w.ID); err != nil {
				return fmt.Errorf("forget the failures that channel %s knows: %w", id, err)
			}
			w.CreatedBy = c.UserID // of a workspace's channel: who answers for it from now on
		}
		w.Url, w.Target, w.Description, w.Causes = in.URL, target, in.Description, in.Causes
		w.Details, w.Enabled = db.Flag(in.Details), db.Flag(in.Enabled)
		if err := e.setTimes(tx, w, &in); err != nil {
			return err
		}
		if err := e.saveWebhook(tx, w); err != nil {
			return err
		}
		out = toChannel(w)
		return nil
	})
	return out, err
}

// setTimes changes when a channel tells, and what waits by the old times.
func (e *Engine) setTimes(tx *db.Tx, w *queries.Webhook, in *api.ChannelInput) error {
	was := *w
	w.QuietFrom, w.QuietTo, w.DigestAt, w.TimeZone = in.QuietFrom, in.QuietTo, in.DigestAt, in.TimeZone
	if was.QuietFrom == w.QuietFrom && was.QuietTo == w.QuietTo && was.DigestAt == w.DigestAt && was.TimeZone == w.TimeZone {
		return nil
	}
	if _, err := tx.RecallHeld(tx.Context(), queries.RecallHeldParams{Now: db.Micros(tx.Now), WebhookID: w.ID}); err != nil {
		return fmt.Errorf("decide again what channel %s holds back: %w", api.ChannelID(w.ID), err)
	}
	tx.AfterCommit(e.deliverable.Wake)
	return nil
}

// DeleteChannel removes a channel and its address; what waits is not told. Errors: not_found.
func (e *Engine) DeleteChannel(ctx context.Context, c Caller, id api.ChannelID) error {
	return e.writeAs(ctx, c, func(tx *db.Tx) error {
		w, err := channelOf(tx.Context(), tx, c, id)
		if err != nil {
			return err
		}
		now := db.Micros(tx.Now)
		if err := db.One(tx.DeleteChannel(tx.Context(), queries.DeleteChannelParams{DeletedAt: now, ID: w.ID})); err != nil {
			return fmt.Errorf("delete channel %s: %w", id, err)
		}
		if _, err := tx.EndFailureStreaks(tx.Context(), w.ID); err != nil {
			return fmt.Errorf("forget the failures that channel %s knows: %w", id, err)
		}
		if _, err := tx.DropWaiting(tx.Context(), queries.DropWaitingParams{Problem: "the channel was deleted", EndedAt: now, WebhookID: w.ID}); err != nil {
			return fmt.Errorf("drop what waits for channel %s: %w", id, err)
		}
		_, err = e.logChannel(tx, w, c.Actor(), api.EventChannelDeleted, nil)
		return err
	})
}

func toChannel(w *queries.Webhook) api.Channel {
	return api.Channel{
		ID: api.ChannelID(w.ID), Target: w.Target, DisabledReason: w.DisabledReason, CreatedAt: api.At(w.CreatedAt),
		ChannelInput: api.ChannelInput{
			Description: w.Description, Scope: w.Scope, Causes: w.Causes, Details: w.Details != 0, Enabled: w.Enabled != 0,
			QuietFrom: w.QuietFrom, QuietTo: w.QuietTo, DigestAt: w.DigestAt, TimeZone: w.TimeZone,
		},
	}
}

// TestChannel creates a message that says that the channel works. It is tried once. Errors:
// not_found.
func (e *Engine) TestChannel(ctx context.Context, c Caller, id api.ChannelID) (out api.ChannelDelivery, err error) {
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		w, err := channelOf(tx.Context(), tx, c, id)
		if err != nil {
			return err
		}
		d := api.DeliveryID(tx.NewID())
		m := message(w.WorkspaceID, api.Event{At: api.At(db.Micros(tx.Now)), Actor: c.Actor(), Data: api.EventData{
			noteTitle: "Stint can reach you", noteText: "This is a test of a channel.", notePath: "/settings/notifications",
		}}, testMessage, "test-"+d.String())
		if err := e.putNote(tx, w, d, m, noted{}); err != nil {
			return err
		}
		stored, err := tx.Delivery(tx.Context(), d)
		if err != nil {
			return fmt.Errorf("read delivery %s: %w", d, err)
		}
		out = toChannelDelivery(stored)
		return nil
	})
	return out, err
}

// ChannelDelivery returns one message of a channel. Errors: not_found.
func (e *Engine) ChannelDelivery(ctx context.Context, c Caller, id api.ChannelID, delivery api.DeliveryID) (out api.ChannelDelivery, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		w, err := channelOf(ctx, tx, c, id)
		if err != nil {
			return err
		}
		d, err := tx.Delivery(ctx, delivery)
		if db.None(err) || (err == nil && d.WebhookID != w.ID) {
			return db.NotFound("delivery")
		}
		if err != nil {
			return fmt.Errorf("read delivery %s: %w", delivery, err)
		}
		out = toChannelDelivery(d)
		return nil
	})
	return out, err
}

// ChannelDeliveries lists what a channel has told and is to tell, newest first. Errors:
// not_found.
func (e *Engine) ChannelDeliveries(ctx context.Context, c Caller, id api.ChannelID, page api.Page) (api.List[api.ChannelDelivery], error) {
	out := api.List[api.ChannelDelivery]{Items: []api.ChannelDelivery{}}
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		w, err := channelOf(ctx, tx, c, id)
		if err != nil {
			return err
		}
		rows, err := tx.ListDeliveries(ctx, queries.ListDeliveriesParams{WebhookID: w.ID, Before: api.DeliveryID(before), N: n + 1})
		out = db.ListOf(rows, n, toChannelDelivery, func(d queries.Delivery) int64 { return int64(d.ID) })
		return err
	})
	return out, err
}

func toChannelDelivery(d queries.Delivery) api.ChannelDelivery {
	note := noteOf(d.Body)
	return api.ChannelDelivery{
		ID: d.ID, ChannelID: api.ChannelID(d.WebhookID), Cause: note.Cause, Title: note.Title, Text: note.Text, Path: note.Path,
		State: api.DeliveryState(d.State), Tries: d.Tries, NextTryAt: api.At(d.NextAt), TriedAt: api.At(d.TriedAt), StatusCode: d.StatusCode,
		Answer: d.Answer, Problem: d.Problem, HeldBack: d.Held, PartOf: d.PartOf, CreatedAt: api.At(d.CreatedAt), EndedAt: api.At(d.EndedAt),
	}
}
