package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/db"
	"stint/engine"
	"stint/engine/enginetest"
	"stint/queries"
)

func channelOf(t *testing.T, w *enginetest.Fixture, change ...func(*api.ChannelInput)) api.Channel {
	t.Helper()
	in := engine.DefaultChannel()
	in.URL = "ntfy://ntfy.sh/topic"
	for _, f := range change {
		f(&in)
	}
	return must[api.Channel](t)(w.CreateChannel(t.Context(), w.Owner, in))
}

func quietly(from, to, zone string) func(*api.ChannelInput) {
	return func(in *api.ChannelInput) { in.QuietFrom, in.QuietTo, in.TimeZone = from, to, zone }
}

func logOf(t *testing.T, w *enginetest.Fixture, ch api.Channel) []api.ChannelDelivery {
	t.Helper()
	return must[api.List[api.ChannelDelivery]](t)(w.ChannelDeliveries(t.Context(), w.Owner, ch.ID, api.Page{Limit: 200})).Items
}

// asks makes an agent ask something now.
func asks(t *testing.T, w *enginetest.Fixture) api.Session {
	t.Helper()
	a := w.Agent()
	k := w.Worker(a)
	return must[api.Session](t)(k.Ask(k.Claim(w.New(a).ID), "may I?"))
}

func failsNow(t *testing.T, w *enginetest.Fixture) api.Agent {
	t.Helper()
	a := w.Agent()
	k := w.Worker(a)
	must[api.Finished](t)(k.Fail(k.Claim(w.New(a).ID), "X"))
	return a
}

// Many failures at once are one message, which names the first of them; what follows within
// minutes is the next. Each has its own entry in the log.
func TestTimes_ManyFailuresAreOneMessage(t *testing.T) {
	w := enginetest.New(t)
	ch := channelOf(t, w)
	for range 20 {
		failsNow(t, w)
	}
	if sent := takeAll(t, w); len(sent) != 0 {
		t.Errorf("at once %d messages were sent", len(sent))
	}
	w.Clock.Step(10 * time.Second)
	for range 20 {
		failsNow(t, w)
	}
	w.Clock.Step(5 * time.Second)
	sent := takeAll(t, w)
	if len(sent) != 1 || sent[0].Note.Title != "agent-1 failed, and 39 more" || sent[0].Note.Path != "/" {
		t.Fatalf("sent %d, the first %+v", len(sent), sent[0].Note)
	}
	lines := strings.Split(sent[0].Note.Text, "\n")
	if len(lines) != 16 || lines[0] != "- agent-1 failed" || lines[15] != "… and 25 more" || len(sent[0].Note.Text) > 1000 {
		t.Errorf("it says %q", sent[0].Note.Text)
	}
	log := logOf(t, w, ch)
	if len(log) != 40 {
		t.Errorf("the log has %d entries", len(log))
	}
	for _, d := range log {
		if d.State != api.DeliveryDelivered || d.Tries != 1 || (d.PartOf == 0) != (d.ID == sent[0].ID) {
			t.Errorf("the log says %+v", d)
		}
	}
	failsNow(t, w)
	w.Clock.Step(time.Minute)
	failsNow(t, w)
	if sent := takeAll(t, w); len(sent) != 0 || !strings.Contains(logOf(t, w, ch)[0].HeldBack, "with what else happens") {
		t.Errorf("within minutes %d messages were sent; the log says %+v", len(sent), logOf(t, w, ch)[0])
	}
	if asks(t, w); len(takeAll(t, w)) != 1 {
		t.Error("a question waits")
	}
	w.Clock.Step(4 * time.Minute)
	if sent := takeAll(t, w); len(sent) != 1 || sent[0].Note.Title != "agent-41 failed, and 1 more" {
		t.Errorf("after five minutes %+v were sent", sent)
	}
}

// A message of several that doesn't arrive is tried again as it was, also by a coordinator that
// was started anew, and all of it ends as it does.
func TestTimes_AMessageOfSeveralIsTriedAgainAsItWas(t *testing.T) {
	w := enginetest.New(t)
	ch := channelOf(t, w)
	failsNow(t, w)
	failsNow(t, w)
	if err := w.ExpandWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Clock.Step(15 * time.Second)
	first := must[[]engine.DeliveryAttempt](t)(w.TakeDeliveries(t.Context(), w.Now(), 9, nil))
	if len(first) != 1 {
		t.Fatalf("%d tries", len(first))
	}
	failsNow(t, w)
	w.Restart() // before the outcome is noted
	w.Clock.Step(time.Minute)
	again := takeAll(t, w)
	if len(again) != 1 || again[0].ID != first[0].ID || *again[0].Note != *first[0].Note || again[0].Number != 2 {
		t.Errorf("tried again is %+v, not %+v", again, first)
	}
	for _, d := range logOf(t, w, ch)[1:] {
		if d.State != api.DeliveryDelivered {
			t.Errorf("the log says %+v", d)
		}
	}
}

// One message holds a limited number of things, however many wait.
func TestTimes_OneMessageHoldsSoMany(t *testing.T) {
	w := enginetest.New(t)
	ch := channelOf(t, w)
	err := w.Store.Write(t.Context(), func(tx *db.Tx) error {
		for i := range 1500 {
			err := tx.InsertDelivery(tx.Context(), queries.InsertDeliveryParams{
				ID: api.DeliveryID(tx.NewID()), WebhookID: api.WebhookID(ch.ID), Message: fmt.Sprint(i), Type: "x", Cause: fmt.Sprint("c", i),
				Body: `{"data":{"cause":"failed","title":"` + strings.Repeat("ä", 200) + `"}}`, CreatedAt: tx.Now.UnixMicro(), NextAt: tx.Now.UnixMicro(),
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sent := takeAll(t, w)
	if len(sent) != 2 || !strings.HasSuffix(sent[0].Note.Title, ", and 999 more") || !strings.HasSuffix(sent[1].Note.Title, ", and 499 more") {
		t.Fatalf("sent are %d", len(sent))
	}
	if text := sent[0].Note.Text; len(text) > 1000 || !strings.HasSuffix(text, "… and 998 more") {
		t.Errorf("it says %q", text)
	}
}

// In quiet hours nothing is told, whatever the clocks of the zone do in that night.
func TestTimes_QuietHoursAlsoWhereClocksChange(t *testing.T) {
	const berlin, sydney = "Europe/Berlin", "Australia/Sydney"
	for _, row := range []struct {
		from, to, zone string
		at, until      string // "" = it is told at once
	}{
		{"22:00", "07:00", berlin, "2026-03-10T21:30:00Z", "2026-03-11T06:00:00Z"},
		{"22:00", "07:00", berlin, "2026-03-10T20:59:59Z", ""},
		{"22:00", "07:00", berlin, "2026-03-10T21:00:00Z", "2026-03-11T06:00:00Z"},
		{"22:00", "07:00", berlin, "2026-03-11T06:00:00Z", ""},
		{"13:00", "15:00", berlin, "2026-03-10T13:59:59Z", "2026-03-10T14:00:00Z"},
		// Clocks go forward at 01:00Z: 02:00 becomes 03:00.
		{"22:00", "07:00", berlin, "2026-03-28T22:30:00Z", "2026-03-29T05:00:00Z"},
		{"22:00", "02:30", berlin, "2026-03-28T22:30:00Z", "2026-03-29T01:00:00Z"},
		{"22:00", "02:30", berlin, "2026-03-29T01:00:00Z", ""},
		{"02:30", "06:00", berlin, "2026-03-29T01:00:00Z", "2026-03-29T04:00:00Z"},
		{"02:10", "02:50", berlin, "2026-03-29T01:00:00Z", ""}, // there is no such time
		// Clocks go back at 01:00Z: 02:00 to 03:00 comes twice.
		{"22:00", "07:00", berlin, "2026-10-24T21:00:00Z", "2026-10-25T06:00:00Z"},
		{"22:00", "02:30", berlin, "2026-10-25T00:15:00Z", "2026-10-25T00:30:00Z"},
		{"22:00", "02:30", berlin, "2026-10-25T01:15:00Z", ""}, // quiet once, not again
		{"02:30", "06:00", berlin, "2026-10-25T01:15:00Z", "2026-10-25T05:00:00Z"},
		{"22:00", "07:00", sydney, "2026-04-04T12:00:00Z", "2026-04-04T21:00:00Z"},
		{"22:00", "07:00", sydney, "2026-10-03T13:00:00Z", "2026-10-03T20:00:00Z"},
	} {
		t.Run(row.from+"-"+row.to+" "+row.at, func(t *testing.T) {
			at := must[time.Time](t)(time.Parse(time.RFC3339, row.at))
			w := enginetest.New(t, enginetest.AtOnce)
			w.Clock.Set(at)
			ch := channelOf(t, w, quietly(row.from, row.to, row.zone))
			asks(t, w)
			sent := takeAll(t, w)
			log := logOf(t, w, ch)
			if row.until == "" {
				if len(sent) != 1 || log[0].HeldBack != "" {
					t.Errorf("sent %d; the log says %+v", len(sent), log)
				}
				return
			}
			if len(sent) != 0 || log[0].NextTryAt.String() != strings.Replace(row.until, "Z", ".000Z", 1) || !strings.Contains(log[0].HeldBack, "quiet hours") || !strings.Contains(log[0].HeldBack, row.zone) {
				t.Fatalf("sent %d; the log says %+v, until %s", len(sent), log[0], log[0].NextTryAt)
			}
			w.Clock.Set(log[0].NextTryAt.Add(-time.Second))
			if sent := takeAll(t, w); len(sent) != 0 {
				t.Error("it was told a second too early")
			}
			w.Clock.Step(time.Second)
			if sent := takeAll(t, w); len(sent) != 1 {
				t.Errorf("at the end %d were told", len(sent))
			}
		})
	}
}

// A try that failed before the quiet hours isn't repeated in them; a test is sent at any time.
func TestTimes_RetriesKeepTheQuietHoursTestsDoNot(t *testing.T) {
	w := enginetest.New(t, enginetest.AtOnce)
	ch := channelOf(t, w, quietly("09:00", "10:00", "UTC"))
	w.Clock.Step(-10 * time.Second)
	asks(t, w)
	if err := w.ExpandWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	due := must[[]engine.DeliveryAttempt](t)(w.TakeDeliveries(t.Context(), w.Now(), 9, nil))
	if len(due) != 1 {
		t.Fatalf("%d tries", len(due))
	}
	if err := w.EndTry(t.Context(), due[0], engine.Sent{StatusCode: 500}); err != nil {
		t.Fatal(err)
	}
	w.Clock.Step(time.Minute)
	if sent := takeAll(t, w); len(sent) != 0 || !logOf(t, w, ch)[0].NextTryAt.Equal(enginetest.Start.Add(time.Hour)) {
		t.Errorf("in the quiet hours %d were sent; the log says %+v", len(sent), logOf(t, w, ch)[0])
	}
	must[api.ChannelDelivery](t)(w.TestChannel(t.Context(), w.Owner, ch.ID))
	if sent := takeAll(t, w); len(sent) != 1 || sent[0].Note.Title != "Stint can reach you" {
		t.Errorf("sent are %+v", sent)
	}
	w.Clock.Set(enginetest.Start.Add(time.Hour))
	if sent := takeAll(t, w); len(sent) != 1 {
		t.Errorf("afterwards %d were sent", len(sent))
	}
}

// A digest is one message a day, at its time by the zone's clock; what was settled by then isn't
// in it.
func TestTimes_ADigestIsOneMessageADay(t *testing.T) {
	w := enginetest.New(t)
	w.Clock.Set(time.Date(2026, 3, 28, 9, 0, 0, 0, time.UTC))
	ch := channelOf(t, w, func(in *api.ChannelInput) { in.DigestAt, in.TimeZone = "8:00", "Europe/Berlin" })
	if ch.DigestAt != "08:00" {
		t.Errorf("it is at %q", ch.DigestAt)
	}
	failsNow(t, w)
	w.Clock.Step(time.Hour)
	s := asks(t, w)
	w.Clock.Step(time.Hour)
	failsNow(t, w)
	if sent := takeAll(t, w); len(sent) != 0 {
		t.Errorf("before its time %d were sent", len(sent))
	}
	takeAll(t, w)
	for _, d := range logOf(t, w, ch) {
		if d.HeldBack != "for the digest of 2026-03-29 08:00 Europe/Berlin" {
			t.Errorf("it is held back %q", d.HeldBack)
		}
	}
	must[api.Session](t)(w.AnswerPrompt(t.Context(), w.Owner, s.ID, api.AnswerInput{PromptID: s.Prompted.ID, Answer: api.Answer{Text: "yes"}}))
	at := time.Date(2026, 3, 29, 6, 0, 0, 0, time.UTC) // the clocks went forward in between
	w.Clock.Set(at.Add(-time.Second))
	if sent := takeAll(t, w); len(sent) != 0 {
		t.Errorf("a second before its time %d were sent", len(sent))
	}
	w.Clock.Set(at)
	sent := takeAll(t, w)
	if len(sent) != 1 || sent[0].Note.Text != "- agent-1 failed\n- agent-3 failed" {
		t.Fatalf("sent are %+v", sent)
	}
	failsNow(t, w)
	takeAll(t, w)
	if d := logOf(t, w, ch)[0]; d.HeldBack != "for the digest of 2026-03-30 08:00 Europe/Berlin" {
		t.Errorf("the next is held back %q", d.HeldBack)
	}
}

// What is held back by times that are taken back is told.
func TestTimes_TakenBackTheyHoldNothingBack(t *testing.T) {
	w := enginetest.New(t, enginetest.AtOnce)
	ch := channelOf(t, w, quietly("08:00", "20:00", "UTC"), func(in *api.ChannelInput) { in.DigestAt = "07:00" })
	asks(t, w)
	if sent := takeAll(t, w); len(sent) != 0 {
		t.Fatalf("%d were sent", len(sent))
	}
	edit := func(change func(in *api.ChannelInput)) {
		t.Helper()
		must[api.Channel](t)(w.EditChannel(t.Context(), w.Owner, ch.ID, func(in *api.ChannelInput) error { change(in); return nil }))
	}
	edit(func(in *api.ChannelInput) { in.DigestAt = "" })
	if sent := takeAll(t, w); len(sent) != 0 || !strings.Contains(logOf(t, w, ch)[0].HeldBack, "until 2026-03-02 20:00 UTC") {
		t.Errorf("in the quiet hours %d were sent; the log says %+v", len(sent), logOf(t, w, ch)[0])
	}
	edit(func(in *api.ChannelInput) { in.QuietFrom, in.QuietTo = "", "" })
	if sent := takeAll(t, w); len(sent) != 1 {
		t.Errorf("%d were sent", len(sent))
	}
}

func TestTimes_ARefusalNamesTheField(t *testing.T) {
	w := enginetest.New(t)
	for _, row := range []struct {
		in   api.ChannelInput
		want string
	}{
		{api.ChannelInput{QuietFrom: "25:00", QuietTo: "07:00", TimeZone: "UTC"}, "quietFrom"},
		{api.ChannelInput{QuietFrom: "22:00", QuietTo: "7", TimeZone: "UTC"}, "quietTo"},
		{api.ChannelInput{QuietFrom: "22:00", TimeZone: "UTC"}, "quietTo"},
		{api.ChannelInput{QuietTo: "07:00", TimeZone: "UTC"}, "quietFrom"},
		{api.ChannelInput{QuietFrom: "7:00", QuietTo: "07:00", TimeZone: "UTC"}, "quietTo"},
		{api.ChannelInput{DigestAt: "noon", TimeZone: "UTC"}, "digestAt"},
		{api.ChannelInput{DigestAt: "12:00"}, "timeZone"},
		{api.ChannelInput{QuietFrom: "22:00", QuietTo: "07:00"}, "timeZone"},
		{api.ChannelInput{TimeZone: "Berlin"}, "timeZone"},
	} {
		in := engine.DefaultChannel()
		in.URL, in.QuietFrom, in.QuietTo, in.DigestAt, in.TimeZone = "ntfy://ntfy.sh/topic", row.in.QuietFrom, row.in.QuietTo, row.in.DigestAt, row.in.TimeZone
		_, err := w.CreateChannel(t.Context(), w.Owner, in)
		if got := fields(t, err); got != row.want {
			t.Errorf("%+v: refused for %q, want %q", row.in, got, row.want)
		}
	}
}
