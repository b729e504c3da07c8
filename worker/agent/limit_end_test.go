package agent

import (
	"testing"
	"time"
)

// What Claude Code, Codex and the services behind them say about a limit's end.
func TestLimitEnd(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 28, 14, 30, 0, 0, time.UTC) // a Saturday, 15:30 in Berlin
	for _, tt := range []struct{ text, want string }{
		{"Claude AI usage limit reached|1795878000", "2026-11-28T15:00:00Z"},
		{"You've hit your limit · resets 6pm (Europe/Berlin)", "2026-11-28T17:00:00Z"},
		{"You've hit your session limit · resets 6:15pm (America/New_York)", "2026-11-28T23:15:00Z"},
		{"5-hour limit reached ∙ resets 6pm", "2026-11-28T17:00:00Z"},
		{"5-hour limit reached ∙ resets 6 PM UTC", "2026-11-28T18:00:00Z"},
		{"5-hour limit reached ∙ resets at 9am", "2026-11-29T08:00:00Z"},
		{"You've hit your limit · resets 3pm (Europe/Berlin)", "2026-11-28T14:00:00Z"}, // that hour has just begun
		{"You've hit your limit · resets 2pm (Europe/Berlin)", "2026-11-29T13:00:00Z"},
		{"You've hit your limit · resets 12am (Europe/Berlin)", "2026-11-28T23:00:00Z"},
		{"You've hit your limit · resets 15:45", "2026-11-28T14:45:00Z"},
		{"You've hit your weekly limit · resets Dec 2 at 10am (Europe/London)", "2026-12-02T10:00:00Z"},
		{"You've hit your weekly limit · resets Dec 2, 2pm (Asia/Kolkata)", "2026-12-02T08:30:00Z"},
		{"Weekly limit reached ∙ resets Jan 3, 9:30am (America/Port-au-Prince)", "2027-01-03T14:30:00Z"},
		{"Opus weekly limit reached ∙ resets Mon 9:00 AM", "2026-11-30T08:00:00Z"},
		{"Opus weekly limit reached ∙ resets Thursday at 9am PST", "2026-12-03T17:00:00Z"},
		{"Weekly limit reached ∙ resets Saturday at 3pm", "2026-11-28T14:00:00Z"},
		{"Weekly limit reached ∙ resets Saturday at 8am", "2026-12-05T07:00:00Z"},
		{"Your limit resets tomorrow at 7:05 am (UTC)", "2026-11-29T07:05:00Z"},
		{"Usage limit reached. Resets at 2026-11-29T14:00:00Z.", "2026-11-29T14:00:00Z"},
		{"Usage limit reached. Resets at 2026-11-29T14:00:00.123+02:00", "2026-11-29T12:00:00Z"},
		{"Usage limit reached, resets on 2026-12-01 08:00 UTC", "2026-12-01T08:00:00Z"},
		{"Limit reached, resets on 1 December 2026 at 8:00 GMT+1", "2026-12-01T07:00:00Z"},
		{"Limit reached · resets in 3 hours", "2026-11-28T17:30:00Z"},
		{"Limit reached · resets in an hour", "2026-11-28T15:30:00Z"},
		{"You've hit your usage limit. Upgrade to Pro (https://openai.com/chatgpt/pricing) or try again in 3 days 4 hours 5 minutes.", "2026-12-01T18:35:00Z"},
		{"You've hit your usage limit. Try again in 2 hours, 10 minutes and 5 seconds.", "2026-11-28T16:40:05Z"},
		{"You've hit your usage limit. Visit https://chatgpt.com/codex/settings/usage to purchase more credits or try again at Dec 1st, 2026 11:43 AM.", "2026-12-01T10:43:00Z"},
		{"You've hit your usage limit. To get more access now, send a request to your admin or try again at 6:45 PM.", "2026-11-28T17:45:00Z"},
		{"Rate limit reached for gpt-5 on tokens per min. Please try again in 6m0s. Visit https://platform.openai.com.", "2026-11-28T14:36:00Z"},
		{"Rate limit reached for gpt-5 on requests per min. Please try again in 1.5s.", "2026-11-28T14:30:01.5Z"},
		{"exceeded retry limit, last status: 429 Too Many Requests", ""},
		{"You've hit your usage limit. Try again later.", ""},
		{"Limit reached · resets 25pm", ""},
		{"Limit reached · resets 6pm on 2031-01-01", ""},
		{"Claude AI usage limit reached|99999999999", ""},
		{"resets", ""},
		{"", ""},
	} {
		sameEnd(t, tt.text, tt.want, limitEnd(tt.text, now, berlin))
	}
}

// A day and a time are read in either order, and a date is no offset.
func TestLimitEnd_InAnyOrder(t *testing.T) {
	here, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 27, 10, 0, 0, 0, here) // a Friday, 18:00 UTC
	for _, tt := range []struct{ text, want string }{
		{"resets 3pm Friday", "2026-11-27T15:00:00-08:00"},
		{"resets at 3pm on Friday", "2026-11-27T15:00:00-08:00"},
		{"resets 9:30am Friday", "2026-11-27T09:30:00-08:00"}, // has just passed
		{"resets 8am Friday", "2026-12-04T08:00:00-08:00"},
		{"resets Friday", "2026-11-27T11:00:00-08:00"}, // some time today
		{"resets today", "2026-11-27T11:00:00-08:00"},
		{"resets on 2026-11-27", "2026-11-27T11:00:00-08:00"},
		{"resets Nov 27", "2026-11-27T11:00:00-08:00"},
		{"resets Saturday", "2026-11-28T00:00:00-08:00"},
		{"resets at 00:30 on Saturday", "2026-11-28T00:30:00-08:00"},
		{"resets at 9pm today", "2026-11-27T21:00:00-08:00"},
		{"resets tonight at 11:30 p.m.", "2026-11-27T23:30:00-08:00"},
		{"resets 9pm tomorrow", "2026-11-28T21:00:00-08:00"},
		{"resets at noon tomorrow", "2026-11-28T12:00:00-08:00"},
		{"resets tomorrow", "2026-11-28T00:00:00-08:00"},
		{"resets 5pm on Dec 3", "2026-12-03T17:00:00-08:00"},
		{"resets 5pm on 3 December 2026", "2026-12-03T17:00:00-08:00"},
		{"resets at 5pm (Europe/Berlin) on Dec 3", "2026-12-03T17:00:00+01:00"},
		{"resets on Thursday, Dec 3 at 17:00 UTC", "2026-12-03T17:00:00Z"},
		{"resets on 2026-12-05", "2026-12-05T00:00:00-08:00"},
		{"resets on 2026-12-05 at 5pm", "2026-12-05T17:00:00-08:00"},
		{"resets on 2026-12-05 at 5:15 pm", "2026-12-05T17:15:00-08:00"},
		{"resets on 2026-12-05 at 5pm UTC-5", "2026-12-05T17:00:00-05:00"},
		{"resets at 17:00 UTC on 2026-12-05", "2026-12-05T17:00:00Z"},
		{"resets at 17:00+02:00 on 2026-12-05", "2026-12-05T17:00:00+02:00"},
		{"resets 2026-12-05T17:00:09Z", "2026-12-05T17:00:09Z"},
		{"resets 2026-12-05 17:00:09-0500", "2026-12-05T17:00:09-05:00"},
		{"resets in 1 week", "2026-12-04T10:00:00-08:00"},
		{"resets in 2 weeks", "2026-12-11T10:00:00-08:00"},
		{"resets in 1w2d", "2026-12-06T10:00:00-08:00"},
		{"please wait 20 minutes", "2026-11-27T10:20:00-08:00"},
		{"retry-after: 3600", "2026-11-27T11:00:00-08:00"},
		{"429 Too Many Requests (Retry-After: 3600, x-request-id: 17)", "2026-11-27T11:00:00-08:00"},
		{`{"retry_after": 3600}`, "2026-11-27T11:00:00-08:00"},
		{`{"resets_in_seconds":3600,"resets_at":1796000000}`, "2026-11-27T11:00:00-08:00"},
		{`{"error":"usage_limit_reached","resets_at":1796000000}`, "2026-11-30T00:53:20Z"},
		{"Please retry after 3600.", "2026-11-27T11:00:00-08:00"},
		{"retry-after: Fri, 04 Dec 2026 15:00:07 GMT", "2026-12-04T15:00:07Z"},
		{"please retry after 3 pm", "2026-11-27T15:00:00-08:00"},
		{"please retry after 15:30", "2026-11-27T15:30:00-08:00"},
		{"resets at 1796000000", "2026-11-30T00:53:20Z"},
		{"resets at 1796000000000", "2026-11-30T00:53:20Z"},
		{"access will be restored at 3pm", "2026-11-27T15:00:00-08:00"},
		{"resets at 9999999999", ""},
		{"resets on 2026-13-45", ""},
		{"retry limit reached after 3 attempts", ""},
	} {
		sameEnd(t, tt.text, tt.want, limitEnd(tt.text, now, here))
	}
}

func sameEnd(t *testing.T, text, want string, got time.Time) {
	t.Helper()
	if want == "" {
		if !got.IsZero() {
			t.Errorf("%q: %v, want none", text, got.UTC())
		}
		return
	}
	if end, err := time.Parse(time.RFC3339Nano, want); err != nil || !got.Equal(end) {
		t.Errorf("%q: %v, want %s (%v)", text, got.Format(time.RFC3339Nano), want, err)
	}
}
