package server_test

import (
	"strings"

	"stint/api"
	"stint/server/servertest"
)

func channelsAnswer(d *fixture, viewer *servertest.Server) {
	s, tb := d.Server, d.tb
	made := servertest.Must[api.Channel](s, 201, "POST", "channels", m{"url": "ntfy://ntfy.sh/topic-secret", "description": "my phone"})
	if made.URL != "" || !made.Enabled || made.Scope != api.ScopePerson || strings.Join(made.Causes, ",") != strings.Join(api.DefaultCauses(), ",") {
		tb.Errorf("made %+v", made)
	}
	for _, bad := range []m{{}, {"url": "ntfy://x/y", "scope": "all"}, {"url": "ntfy://x/y", "causes": []string{}}, {"url": "ntfy://x/y", "causes": []string{"nonsense"}}} {
		s.Refused(422, api.CodeInvalid, "POST", "channels", bad)
	}
	one := "channels/" + made.ID.String()
	if got := servertest.Must[api.Channel](s, 200, "PATCH", one, m{"enabled": false, "causes": []string{"needs_you"}, "details": true, "url": nil}); got.Enabled || len(got.Causes) != 1 || !got.Details || got.Description != made.Description {
		tb.Errorf("edited %+v", got)
	}
	if got := servertest.Must[api.Channel](s, 200, "PATCH", one, m{"causes": nil}); len(got.Causes) != len(api.DefaultCauses()) {
		tb.Errorf("edited %+v", got)
	}
	s.Refused(422, api.CodeInvalid, "PATCH", one, m{"scope": "workspace"})
	s.Refused(422, api.CodeInvalid, "PATCH", one, m{"quietFrom": "22:00", "timeZone": "UTC"})
	if got := servertest.Must[api.Channel](s, 200, "PATCH", one, m{"quietFrom": "22:00", "quietTo": "7:00", "digestAt": "08:00", "timeZone": "UTC"}); got.QuietTo != "07:00" || got.DigestAt != "08:00" || got.TimeZone != "UTC" {
		tb.Errorf("edited %+v", got)
	}
	if got := servertest.Must[api.Channel](s, 200, "PATCH", one, m{"quietFrom": nil, "quietTo": nil, "digestAt": nil}); got.QuietFrom+got.QuietTo+got.DigestAt != "" {
		tb.Errorf("edited %+v", got)
	}
	if got := servertest.Must[api.Channel](s, 200, "GET", one, nil); got.Enabled || got.URL != "" {
		tb.Errorf("shown %+v", got)
	}
	servertest.Must[list](s, 200, "GET", "channels?limit=1", nil)
	test := servertest.Must[api.ChannelDelivery](s, 200, "POST", one+"/test", m{})
	if test.State != api.DeliveryWaiting || test.Title == "" {
		tb.Errorf("the test is %+v", test)
	}
	if got := servertest.Must[api.ChannelDelivery](s, 200, "GET", one+"/deliveries/"+test.ID.String(), nil); got.ID != test.ID {
		tb.Errorf("the message is %+v", got)
	}
	if got := servertest.Must[api.List[api.ChannelDelivery]](s, 200, "GET", one+"/deliveries", nil); len(got.Items) != 1 {
		tb.Errorf("it told %+v", got)
	}
	viewer.Refused(403, api.CodeForbidden, "POST", "channels", m{"url": "ntfy://ntfy.sh/topic", "scope": "workspace"})
	servertest.Must[api.Channel](viewer, 201, "POST", "channels", m{"url": "ntfy://ntfy.sh/topic"})
	viewer.Refused(404, api.CodeNotFound, "GET", one, nil)
	viewer.Refused(404, api.CodeNotFound, "GET", one+"/deliveries/"+test.ID.String(), nil)
	s.Refused(404, api.CodeNotFound, "GET", "webhooks/"+strings.Replace(made.ID.String(), "chn_", "whk_", 1), nil) // a channel is no webhook
	if got := s.Do("DELETE", one, nil); got.Status != 204 {
		tb.Errorf("it was removed with %d", got.Status)
	}
}
