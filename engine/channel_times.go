package engine

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/db"
	"stint/queries"
	"stint/scheduler"
)

// When a channel tells, and what it tells in one message (contract 17.3). Every cause has its
// own delivery, so that each is told once; those that are due together go into the message of
// the first.

const (
	groupMost  = 1000 // deliveries in one message
	groupLines = 15   // of these, named in it
	groupBytes = 900  // of the lines at most: some services cut at 1,024 characters
)

const timeOfDay = "15:04"

// checkTimes refuses times at which nothing can be told, and writes what it takes as HH:MM.
func checkTimes(v *api.Invalid, in *api.ChannelInput, now time.Time) {
	for _, one := range []struct {
		field string
		text  *string
	}{{"quietFrom", &in.QuietFrom}, {"quietTo", &in.QuietTo}, {"digestAt", &in.DigestAt}} {
		*one.text = strings.TrimSpace(*one.text)
		if *one.text == "" {
			continue
		}
		t, err := time.Parse(timeOfDay, *one.text)
		if err != nil {
			v.Add(one.field, fmt.Sprintf("%q is no time of day: write hours and minutes, such as 22:00", *one.text))
			continue
		}
		*one.text = t.Format(timeOfDay)
	}
	switch {
	case in.QuietFrom == "" && in.QuietTo != "":
		v.Add("quietFrom", "is missing: quiet hours have a beginning and an end")
	case in.QuietFrom != "" && in.QuietTo == "":
		v.Add("quietTo", "is missing: quiet hours have a beginning and an end")
	case in.QuietFrom != "" && in.QuietFrom == in.QuietTo:
		v.Add("quietTo", "is the time at which they begin: name another, or disable the channel")
	}
	in.TimeZone = strings.TrimSpace(in.TimeZone)
	switch {
	case in.TimeZone != "":
		checkTime(v, "@daily", in.TimeZone, now)
	case in.QuietFrom != "" || in.QuietTo != "" || in.DigestAt != "":
		v.Add("timeZone", "is missing: name the zone of these times, such as Europe/Berlin")
	}
}

// daily is the schedule of a time of day: when clocks change it comes once a day as well.
func daily(text, zone string, now time.Time) (s scheduler.Schedule, err error) {
	t, err := time.Parse(timeOfDay, text)
	if err != nil {
		return s, fmt.Errorf("read a time of day: %w", err)
	}
	return scheduler.Parse(fmt.Sprintf("%d %d * * *", t.Minute(), t.Hour()), zone, now)
}

// quietUntil is the end of the quiet hours that now lies in; the zero time when it lies in none.
func quietUntil(w *queries.Webhook, now time.Time) (time.Time, error) {
	if w.QuietFrom == "" {
		return time.Time{}, nil
	}
	from, err := daily(w.QuietFrom, w.TimeZone, now)
	if err != nil {
		return time.Time{}, err
	}
	to, err := daily(w.QuietTo, w.TimeZone, now)
	if err != nil {
		return time.Time{}, err
	}
	// Between the two they end before they begin again.
	if end := to.Next(now, now); end.Before(from.Next(now, now)) {
		return end, nil
	}
	return time.Time{}, nil
}

// heldBack says until when a channel's message is not to be told, and why; the zero time means
// that it may be.
func (e *Engine) heldBack(w *queries.Webhook, d *queries.Delivery, now time.Time) (until time.Time, why string) {
	if d.Cause == "" {
		return until, "" // a test
	}
	in := func(t time.Time) string {
		zone, err := time.LoadLocation(w.TimeZone)
		if err != nil {
			zone = time.UTC
		}
		return t.In(zone).Format("2006-01-02 15:04") + " " + w.TimeZone
	}
	if w.DigestAt != "" && d.Tries == 0 {
		made := time.UnixMicro(d.CreatedAt)
		s, err := daily(w.DigestAt, w.TimeZone, now)
		if err == nil {
			if at := s.Next(made, made); at.After(now) {
				return at, "for the digest of " + in(at)
			}
		} else {
			e.log.Warn("the digest's time can't be read; what happens is told at once", "channel", api.ChannelID(w.ID).String(), "error", err)
		}
	}
	end, err := quietUntil(w, now)
	if err != nil {
		e.log.Warn("the quiet hours can't be read; what happens is told at once", "channel", api.ChannelID(w.ID).String(), "error", err)
		return time.Time{}, ""
	}
	if end.IsZero() {
		return end, ""
	}
	return end, "by the quiet hours until " + in(end)
}

// gathered says when a channel's new message is due, and why not at once. A digest gathers
// by itself.
func (e *Engine) gathered(w *queries.Webhook, cause api.Cause, now time.Time) (due int64, why string) {
	if cause == api.CauseNeedsYou || w.DigestAt != "" {
		return db.Micros(now), ""
	}
	due = db.Micros(now.Add(e.cfg.GatherFor))
	if next := w.ToldAt + db.Span(e.cfg.GatherEvery); next > due {
		return next, "until " + clock(next) + ", to be told with what else happens"
	}
	return due, ""
}

// holdBack postpones a delivery that may not be told now, and reports whether it did.
func (e *Engine) holdBack(tx *db.Tx, w *queries.Webhook, d *queries.Delivery) (bool, error) {
	until, why := e.heldBack(w, d, tx.Now)
	if until.IsZero() {
		return false, nil
	}
	err := db.One(tx.HoldDelivery(tx.Context(), queries.HoldDeliveryParams{NextAt: db.Micros(until), Held: why, ID: d.ID}))
	if err != nil {
		return false, fmt.Errorf("hold delivery %s back: %w", d.ID, err)
	}
	return true, nil
}

// join puts what else a channel has to tell now into the message of a delivery that is tried
// for the first time.
func (e *Engine) join(tx *db.Tx, w *queries.Webhook, d *queries.Delivery) error {
	if d.Cause == "" || d.Tries > 0 {
		return nil
	}
	rows, err := tx.UntoldOf(tx.Context(), queries.UntoldOfParams{WebhookID: w.ID, Before: db.Micros(tx.Now.Add(e.cfg.GatherFor)), N: groupMost})
	if err != nil {
		return fmt.Errorf("read what else channel %s has to tell: %w", api.ChannelID(w.ID), err)
	}
	for i := range rows {
		other := &rows[i]
		if other.ID == d.ID {
			continue
		}
		if until, _ := e.heldBack(w, other, tx.Now); !until.IsZero() {
			continue
		}
		if dropped, err := dropSettled(tx, w, other); err != nil || dropped {
			if err != nil {
				return err
			}
			continue
		}
		if _, err := tx.JoinDelivery(tx.Context(), queries.JoinDeliveryParams{PartOf: d.ID, ID: other.ID}); err != nil {
			return fmt.Errorf("tell delivery %s with %s: %w", other.ID, d.ID, err)
		}
	}
	if noteOf(d.Body).Cause == api.CauseNeedsYou {
		return nil
	}
	if err := db.One(tx.NoteTold(tx.Context(), queries.NoteToldParams{ToldAt: db.Micros(tx.Now), ID: w.ID})); err != nil {
		return fmt.Errorf("note that channel %s tells something: %w", api.ChannelID(w.ID), err)
	}
	return nil
}

// wholeNote is what the message of a delivery tells: its own note, or all that go together, in
// the order in which they happened.
func wholeNote(tx *db.Tx, d *queries.Delivery) (Note, error) {
	own := noteOf(d.Body)
	parts, err := tx.PartsOf(tx.Context(), d.ID)
	if err != nil {
		return own, fmt.Errorf("read what is told with delivery %s: %w", d.ID, err)
	}
	if len(parts) == 0 {
		return own, nil
	}
	titles := []string{own.Title}
	for i := range parts {
		titles = append(titles, noteOf(parts[i].Body).Title)
	}
	return Note{Title: fmt.Sprintf("%s, and %d more", own.Title, len(parts)), Text: listOf(titles), Path: "/"}, nil
}

// listOf has a line for each title, as far as a message goes.
func listOf(titles []string) string {
	var b strings.Builder
	for i, title := range titles {
		if i == groupLines || b.Len()+len(title) > groupBytes {
			b.WriteString("… and " + strconv.Itoa(len(titles)-i) + " more")
			return b.String()
		}
		b.WriteString("- " + title + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// putNote makes the delivery of a message that a channel tells.
func (e *Engine) putNote(tx *db.Tx, w *queries.Webhook, id api.DeliveryID, m cloudEvent, n noted) error {
	body, err := json.Marshal(m, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	d := queries.Delivery{ID: id, WebhookID: w.ID, Message: m.ID, Type: m.Type, Body: string(body), Cause: n.key}
	if n.key != "" {
		d.NextAt, d.Held = e.gathered(w, n.Cause, tx.Now)
	}
	return e.putDelivery(tx, d)
}
