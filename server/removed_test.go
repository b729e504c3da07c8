package server_test

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"stint/api"
	"stint/server/servertest"
)

// removedAnswer asks for a session that retention took, at every path that says so.
func removedAnswer(t *testing.T) {
	t.Helper()
	var later atomic.Int64
	d := newFixture(t, servertest.Options{Clock: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
	s := d.Server
	id := d.addSession().ID.String()
	servertest.Must[api.Changed](s, 200, "POST", "sessions/"+id+"/cancel", m{})
	told := servertest.Must[api.List[api.Event]](s, 200, "GET", "sessions/"+id+"/events", nil)
	seq := strconv.FormatInt(told.Items[0].Seq, 10)
	later.Store(int64(181 * 24 * time.Hour))
	if would := servertest.Must[api.Pruned](s, 200, "POST", "system/prune", m{"dryRun": true}); would.Sessions != 1 || !would.Done {
		t.Errorf("a dry run answers %+v", would)
	}
	if went := servertest.Must[api.Pruned](s, 200, "POST", "system/prune", nil); went.Sessions != 1 || !went.Done {
		t.Errorf("a removal answers %+v", went)
	}
	for _, at := range []string{"sessions/" + id, "agents/tidy/sessions/" + id} {
		said := s.Refused(410, api.CodeGone, "GET", at, nil)
		if day := time.Now().Add(181 * 24 * time.Hour).UTC().Format(time.DateOnly); !strings.Contains(said.Detail, day) {
			t.Errorf("%s answers %q, and not that it went on %s", at, said.Detail, day)
		}
		s.Refused(410, api.CodeGone, "POST", at+"/keep", nil)
		s.Refused(410, api.CodeGone, "DELETE", at+"/keep", nil)
		for _, part := range []string{"/items", "/output", "/activities", "/events", "/messages", "/attachments", "/attachments/att_0000000001"} {
			s.Refused(410, api.CodeGone, "GET", at+part, nil)
		}
		for _, verb := range []string{"/cancel", "/stop", "/retry", "/archive"} {
			s.Refused(410, api.CodeGone, "POST", at+verb, nil)
		}
		s.Refused(410, api.CodeGone, "POST", at+"/answer", m{"promptId": "pmt_0000000001", "text": "x"})
		s.Refused(410, api.CodeGone, "GET", at+"/prompts/pmt_0000000001", nil)
		s.Refused(410, api.CodeGone, "POST", at+"/messages", m{"text": "x"})
	}
	for call, body := range map[string]any{
		"GET /changes": nil, "POST /landings": m{"verb": "push"}, "GET /landings/lnd_0000000001": nil, "DELETE /landings/lnd_0000000001": nil,
		"GET /review": nil, "POST /review": m{"text": "x"}, "POST /review/send": m{}, "DELETE /review/rvw_0000000001": nil,
	} {
		method, path, _ := strings.Cut(call, " ")
		s.Refused(410, api.CodeGone, method, "sessions/"+id+path, body)
	}
	thread := "threads/" + strings.Replace(id, "ses_", "thr_", 1)
	s.Refused(410, api.CodeGone, "GET", thread, nil)
	s.Refused(410, api.CodeGone, "PATCH", thread, m{"state": "completed"})
	s.Refused(410, api.CodeGone, "GET", "events?after="+seq, nil)
}
