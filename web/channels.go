package web

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"stint/api"
	"stint/engine"
)

const (
	notificationsPath = "/settings/notifications"

	// testPatience is how long the page of a test is held for its outcome, and testPace how
	// often that is looked for: no event says that a message was tried.
	testPatience = 12 * time.Second
	testPace     = 100 * time.Millisecond
)

// channelsPage is what channels.templ draws of all of them.
type channelsPage struct {
	tabs   []Tab
	kinds  []Tab
	kind   api.ChannelKind
	list   []api.Channel
	form   channelForm
	admin  bool // may make the workspace's
	scope  Input
	scopes []Option
	now    time.Time
}

// channelForm is what people set on a channel.
type channelForm struct {
	url     Input
	note    Input
	wrong   string // about the causes
	causes  api.Labels
	details bool

	quietFrom, quietTo, digest, zone Input
}

func newChannelForm(in api.ChannelInput, kind api.ChannelKind, bad map[string]string) channelForm {
	return channelForm{
		// What was typed is a secret: it doesn't come back with an error.
		url:  Input{ID: "url", Label: "Address", Placeholder: kind.Pattern, Error: sentence(bad["url"]), Mono: true},
		note: Input{ID: "description", Label: "What it is for", Value: in.Description, Error: sentence(bad["description"])}, wrong: sentence(bad["causes"]),
		causes: in.Causes, details: in.Details,
		quietFrom: timeInput("quietFrom", "Quiet from", in.QuietFrom, bad), quietTo: timeInput("quietTo", "Quiet until", in.QuietTo, bad),
		digest: timeInput("digestAt", "All of a day in one message, at", in.DigestAt, bad),
		zone:   Input{ID: "timeZone", Label: "Time zone", Value: in.TimeZone, Error: sentence(bad["timeZone"])},
	}
}

func timeInput(field, label, value string, bad map[string]string) Input {
	return Input{ID: field, Label: label, Value: value, Type: "time", Error: sentence(bad[field])}
}

func (v *visit) channels() error {
	in := engine.DefaultChannel()
	in.TimeZone = v.prefs.zone.String()
	return v.drawChannels(http.StatusOK, in, nil)
}

func (v *visit) drawChannels(status int, in api.ChannelInput, bad map[string]string) error {
	p := channelsPage{
		tabs: v.settingsTabs("Notifications"), admin: v.caller.CanManageWebhooks(), now: v.web.engine.Now(), kind: v.chosenKind(),
		scope:  Input{ID: "scope", Label: "Whom it tells", Value: string(in.Scope), Error: sentence(bad["scope"])},
		scopes: []Option{{string(api.ScopePerson), "Me: what I may see"}, {string(api.ScopeWorkspace), "The workspace: nobody's local sessions"}},
	}
	p.form = newChannelForm(in, p.kind, bad)
	p.form.url.Required = true
	for _, k := range api.ChannelKinds {
		p.kinds = append(p.kinds, Tab{Label: k.Name, URL: notificationsPath + "?kind=" + k.Scheme + "#make-channel", Current: k == p.kind})
	}
	list, err := v.web.engine.Channels(v.r.Context(), v.caller, settingsList)
	if err != nil {
		return err
	}
	p.list = list.Items
	return v.page(status, Shell{Title: "Notifications", Place: "settings", Now: p.now}, channels(p))
}

// chosenKind is the service whose address is explained.
func (v *visit) chosenKind() api.ChannelKind {
	i := slices.IndexFunc(api.ChannelKinds, func(k api.ChannelKind) bool { return k.Scheme == v.r.FormValue("kind") })
	return api.ChannelKinds[max(i, 0)]
}

// typedChannel is what a form says.
func typedChannel(form url.Values) api.ChannelInput {
	in := engine.DefaultChannel()
	in.URL, in.Description, in.Details, in.Causes = strings.TrimSpace(form.Get("url")), form.Get("description"), form.Get("details") == "true", api.Labels{}
	for _, c := range api.Causes {
		if form.Get("tell-"+string(c.Cause)) == "true" {
			in.Causes = append(in.Causes, string(c.Cause))
		}
	}
	in.QuietFrom, in.QuietTo, in.DigestAt, in.TimeZone = form.Get("quietFrom"), form.Get("quietTo"), form.Get("digestAt"), form.Get("timeZone")
	if scope := form.Get("scope"); scope != "" {
		in.Scope = api.ChannelScope(scope)
	}
	return in
}

func (v *visit) createChannel() error {
	in := typedChannel(v.r.PostForm)
	c, err := v.web.engine.CreateChannel(v.r.Context(), v.caller, in)
	if bad, ok := fieldErrors(err); ok {
		return v.drawChannels(http.StatusUnprocessableEntity, in, bad)
	}
	if err != nil {
		return err
	}
	return v.to(channelURL(c.ID), "Made the channel: send a test through it")
}

// channelPage is what channels.templ draws of one.
type channelPage struct {
	api.Channel
	tabs   []Tab
	form   channelForm
	log    []api.ChannelDelivery
	tested *api.ChannelDelivery
	now    time.Time
}

func (v *visit) channelID() (id api.ChannelID, err error) {
	if id.UnmarshalText([]byte(v.path("channel"))) != nil {
		return 0, api.Refuse(api.CodeNotFound, "There is no such channel here.")
	}
	return id, nil
}

func (v *visit) channel() error {
	id, err := v.channelID()
	if err != nil {
		return err
	}
	var tested *api.ChannelDelivery
	var delivery api.DeliveryID
	if delivery.UnmarshalText([]byte(v.r.FormValue("test"))) == nil && delivery != 0 {
		d, err := v.outcome(v.r.Context(), id, delivery)
		if err != nil {
			return err
		}
		tested = &d
	}
	c, err := v.web.engine.Channel(v.r.Context(), v.caller, id)
	if err != nil {
		return err
	}
	in := c.ChannelInput
	in.TimeZone = cmp.Or(in.TimeZone, v.prefs.zone.String())
	return v.drawChannel(http.StatusOK, c, in, tested, nil)
}

// outcome waits until a message has been tried.
func (v *visit) outcome(ctx context.Context, id api.ChannelID, delivery api.DeliveryID) (api.ChannelDelivery, error) {
	d, err := v.web.engine.ChannelDelivery(ctx, v.caller, id, delivery)
	for waited := time.Duration(0); err == nil && d.State == api.DeliveryWaiting && waited < testPatience; waited += testPace {
		pause := time.NewTimer(testPace)
		select {
		case <-ctx.Done():
			pause.Stop()
			return d, ctx.Err()
		case <-pause.C:
		}
		d, err = v.web.engine.ChannelDelivery(ctx, v.caller, id, delivery)
	}
	return d, err
}

func (v *visit) drawChannel(status int, c api.Channel, in api.ChannelInput, tested *api.ChannelDelivery, bad map[string]string) error {
	scheme, _, _ := strings.Cut(c.Target, ":")
	i := slices.IndexFunc(api.ChannelKinds, func(k api.ChannelKind) bool { return k.Scheme == scheme })
	p := channelPage{
		Channel: c, tabs: v.settingsTabs("Notifications"), tested: tested, now: v.web.engine.Now(), form: newChannelForm(in, api.ChannelKinds[max(i, 0)], bad),
	}
	p.form.url.Hint = "Empty leaves it as it is. It is never shown again."
	list, err := v.web.engine.ChannelDeliveries(v.r.Context(), v.caller, c.ID, api.Page{})
	if err != nil {
		return err
	}
	p.log = list.Items
	return v.page(status, Shell{Title: "Channel", Place: "settings", Now: p.now}, channel(p))
}

func (v *visit) saveChannel() error {
	id, err := v.channelID()
	if err != nil {
		return err
	}
	in := typedChannel(v.r.PostForm)
	_, err = v.web.engine.EditChannel(v.r.Context(), v.caller, id, func(c *api.ChannelInput) error {
		c.URL, c.Description, c.Causes, c.Details = in.URL, in.Description, in.Causes, in.Details
		c.QuietFrom, c.QuietTo, c.DigestAt, c.TimeZone = in.QuietFrom, in.QuietTo, in.DigestAt, in.TimeZone
		return nil
	})
	if bad, ok := fieldErrors(err); ok {
		c, err := v.web.engine.Channel(v.r.Context(), v.caller, id)
		if err != nil {
			return err
		}
		return v.drawChannel(http.StatusUnprocessableEntity, c, in, nil, bad)
	}
	if err != nil {
		return err
	}
	return v.to(channelURL(id), "Saved")
}

func (v *visit) actChannel() error {
	id, err := v.channelID()
	if err != nil {
		return err
	}
	ctx, eng, here := v.r.Context(), v.web.engine, channelURL(id)
	switch v.path("verb") {
	case "test":
		d, err := eng.TestChannel(ctx, v.caller, id)
		if err != nil {
			return err
		}
		return v.to(here+"?test="+d.ID.String(), "")
	case "delete":
		if err := eng.DeleteChannel(ctx, v.caller, id); err != nil {
			return err
		}
		return v.to(notificationsPath, "Removed the channel")
	}
	enable := v.path("verb") == "enable"
	_, err = eng.EditChannel(ctx, v.caller, id, func(in *api.ChannelInput) error {
		in.Enabled = enable
		return nil
	})
	if err != nil {
		return err
	}
	if enable {
		return v.to(here, "Enabled: it tells of what happens from now on")
	}
	return v.to(here, "Disabled")
}

func (v *visit) askDeleteChannel() error {
	id, err := v.channelID()
	if err != nil {
		return err
	}
	c, err := v.web.engine.Channel(v.r.Context(), v.caller, id)
	if err != nil {
		return err
	}
	ask := Confirm{
		ID: "ask-delete", Title: "Remove the channel?", Text: "Nothing more is told to " + c.Target + ", what waits included. Its address and its log go with it.",
		Action: channelURL(id) + "/delete", Do: "Remove", Keep: "Keep", Back: channelURL(id), Risky: true,
	}
	return v.page(http.StatusOK, Shell{Title: ask.Title, Place: "settings"}, confirmPage(ask))
}

func channelURL(id api.ChannelID) string { return notificationsPath + "/" + id.String() }

func channelState(c api.Channel) string {
	switch {
	case c.Enabled:
		return "Enabled"
	case c.DisabledReason != "":
		return "Disabled: " + c.DisabledReason
	default:
		return "Disabled"
	}
}

func scopeWords(s api.ChannelScope) string {
	if s == api.ScopeWorkspace {
		return "the workspace"
	}
	return "you"
}

// causesWords are what a channel tells, in the order of the form.
func causesWords(causes api.Labels) string {
	if len(causes) == len(api.Causes) {
		return "everything"
	}
	var words []string
	for _, c := range api.Causes {
		if slices.Contains(causes, string(c.Cause)) {
			words = append(words, c.Means)
		}
	}
	return strings.Join(words, "; ")
}

// channelWhen says when a channel tells.
func channelWhen(c api.Channel) string {
	var parts []string
	if c.DigestAt != "" {
		parts = append(parts, "once a day, at "+c.DigestAt)
	} else {
		parts = append(parts, "as it happens")
	}
	if c.QuietFrom != "" {
		parts = append(parts, "nothing from "+c.QuietFrom+" to "+c.QuietTo)
	}
	if c.DigestAt != "" || c.QuietFrom != "" {
		parts = append(parts, c.TimeZone)
	}
	return strings.Join(parts, " · ")
}

// toldTitle is the heading of a message's text.
func toldTitle(d api.ChannelDelivery) string {
	if d.State == api.DeliveryWaiting {
		return "What is to be told"
	}
	return "What was told"
}

// toldWords say what happened to a message.
func toldWords(d api.ChannelDelivery) string {
	parts := []string{string(d.State)}
	switch {
	case d.PartOf != 0:
		parts = append(parts, "in one message with "+d.PartOf.String())
	case d.HeldBack != "" && d.Tries == 0: // a message that was tried is held back no more
		parts = append(parts, "held back "+d.HeldBack)
	}
	if d.Tries > 1 {
		parts = append(parts, strconv.FormatInt(d.Tries, 10)+" tries")
	}
	if d.StatusCode != 0 && d.Problem == "" {
		parts = append(parts, "answered "+strconv.FormatInt(d.StatusCode, 10))
	}
	if d.Problem != "" {
		parts = append(parts, d.Problem)
	}
	return strings.Join(parts, " · ")
}
