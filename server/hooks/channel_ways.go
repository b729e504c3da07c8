package hooks

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/discord"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/matrix"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/mattermost"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/rocketchat"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/slack"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/telegram"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/email/smtp"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/gotify"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/ntfy"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/pushover"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/specialized/generic"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
	"github.com/nicholas-fedor/shoutrrr/pkg/util"
)

// ways are how the addresses of each kind are reached. Services that take a client send by
// themselves; of the others, whose clients are their own, shoutrrr's reading of the address and
// its form of the message are used.
var ways = map[string]func(*url.URL) (way, error){
	"ntfy": toNtfy, "gotify": toGotify, "mattermost": toMattermost, "rocketchat": toRocketChat, "pushover": toPushover,
	"slack": toSlack, "discord": toDiscord, "telegram": toTelegram, "matrix": toMatrix, "generic": toGeneric, "smtp": toMail,
}

func toNtfy(u *url.URL) (way, error) {
	s := &ntfy.Service{}
	if err := s.Initialize(u, util.DiscardLogger); err != nil || s.Config.Host == "" || s.Config.Topic == "" {
		return way{}, cmp.Or(err, errForm)
	}
	return way{host: u.Hostname(), port: u.Port(), send: func(_ context.Context, c *http.Client, t telling) error {
		s.SetHTTPClient(c)
		params := types.Params{"title": t.title}
		if t.link != "" {
			params["click"] = t.link
		}
		return s.Send(t.text, &params)
	}}, nil
}

func toGotify(u *url.URL) (way, error) {
	s := &gotify.Service{}
	if err := s.Initialize(u, util.DiscardLogger); err != nil {
		return way{}, err
	}
	return way{host: u.Hostname(), port: u.Port(), send: func(_ context.Context, c *http.Client, t telling) error {
		*s.GetHTTPClient() = *c
		return s.Send(t.text, &types.Params{"title": t.title})
	}}, nil
}

func toMattermost(u *url.URL) (way, error) {
	s := &mattermost.Service{}
	if err := s.Initialize(u, util.DiscardLogger); err != nil {
		return way{}, err
	}
	return way{host: u.Hostname(), port: u.Port(), send: func(_ context.Context, c *http.Client, t telling) error {
		*s.GetHTTPClient() = *c
		return s.Send(t.together(), &types.Params{})
	}}, nil
}

func toRocketChat(u *url.URL) (way, error) {
	s := &rocketchat.Service{}
	if err := s.Initialize(u, util.DiscardLogger); err != nil {
		return way{}, err
	}
	return way{host: u.Hostname(), port: u.Port(), send: func(_ context.Context, c *http.Client, t telling) error {
		s.Client = c
		return s.Send(t.together(), &types.Params{})
	}}, nil
}

func toPushover(u *url.URL) (way, error) {
	s := &pushover.Service{}
	if err := s.Initialize(u, util.DiscardLogger); err != nil {
		return way{}, err
	}
	return way{send: func(_ context.Context, c *http.Client, t telling) error {
		s.Client = c
		return s.Send(t.text, &types.Params{"title": t.title})
	}}, nil
}

func toSlack(u *url.URL) (way, error) {
	config, err := slack.CreateConfigFromURL(u)
	if err != nil || config.Token.IsAPIToken() { // whose outcome Slack doesn't tell by the status
		return way{}, cmp.Or(err, errForm)
	}
	return way{send: func(ctx context.Context, c *http.Client, t telling) error {
		return sendJSON(ctx, c, http.MethodPost, config.Token.WebhookURL(), slack.CreateJSONPayload(config, t.together()), nil)
	}}, nil
}

func toDiscord(u *url.URL) (way, error) {
	config := &discord.Config{}
	if err := config.SetURL(u); err != nil {
		return way{}, err
	}
	return way{send: func(ctx context.Context, c *http.Client, t telling) error {
		return sendJSON(ctx, c, http.MethodPost, discord.CreateAPIURLFromConfig(config), map[string]any{
			"content": t.together(), "allowed_mentions": map[string]any{"parse": []string{}},
		}, nil)
	}}, nil
}

func toTelegram(u *url.URL) (way, error) {
	config := &telegram.Config{}
	if err := config.SetURL(u); err != nil || len(config.Chats) != 1 { // several would be several messages
		return way{}, cmp.Or(err, errForm)
	}
	return way{send: func(ctx context.Context, c *http.Client, t telling) error {
		to := url.URL{Scheme: "https", Host: "api.telegram.org", Path: "/bot" + config.Token + "/sendMessage"}
		return sendJSON(ctx, c, http.MethodPost, to.String(), map[string]any{
			"chat_id": config.Chats[0], "text": t.together(), "disable_notification": !config.Notification,
		}, nil)
	}}, nil
}

func toMatrix(u *url.URL) (way, error) {
	config := &matrix.Config{}
	if err := config.SetURL(u); err != nil || config.User != "" || config.Password == "" || len(config.Rooms) != 1 || !strings.HasPrefix(config.Rooms[0], "!") {
		return way{}, cmp.Or(err, errForm)
	}
	return way{host: u.Hostname(), port: u.Port(), send: func(ctx context.Context, c *http.Client, t telling) error {
		scheme := "https"
		if config.DisableTLS {
			scheme = "http"
		}
		// The server takes a repetition with the same last part of the path as the same message.
		to := (&url.URL{Scheme: scheme, Host: u.Host}).JoinPath("_matrix/client/v3/rooms", url.PathEscape(config.Rooms[0]), "send/m.room.message", url.PathEscape(t.id))
		return sendJSON(ctx, c, http.MethodPut, to.String(), map[string]string{"msgtype": "m.text", "body": t.together()},
			http.Header{"Authorization": {"Bearer " + config.Password}})
	}}, nil
}

func toGeneric(u *url.URL) (way, error) {
	s := &generic.Service{}
	if err := s.Initialize(u, util.DiscardLogger); err != nil || u.Host == "" {
		return way{}, cmp.Or(err, errForm)
	}
	s.Config.Template = cmp.Or(strings.ToLower(s.Config.Template), "json")
	if s.Config.Template != "json" {
		return way{}, errForm
	}
	header := http.Header{"Content-Type": {s.Config.ContentType}}
	for name, values := range u.Query() {
		if name, ok := strings.CutPrefix(name, string(generic.HeaderPrefixChar)); ok {
			header.Set(name, values[0])
		}
	}
	return way{host: u.Hostname(), port: u.Port(), send: func(ctx context.Context, c *http.Client, t telling) error {
		payload, err := s.GetPayload(s.Config, types.Params{s.Config.TitleKey: t.title, s.Config.MessageKey: t.text, "link": t.link, "id": t.id})
		if err != nil {
			return err
		}
		return sendBody(ctx, c, s.Config.RequestMethod, s.Config.WebhookURL().String(), payload, header)
	}}, nil
}

func toMail(u *url.URL) (way, error) {
	s := &smtp.Service{}
	if err := s.Initialize(u, util.DiscardLogger); err != nil {
		return way{}, err
	}
	m, err := newMailbox(s.Config)
	return way{host: u.Host, mail: m}, err
}

func sendJSON(ctx context.Context, c *http.Client, method, to string, v any, header http.Header) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", "application/json")
	return sendBody(ctx, c, method, to, bytes.NewReader(body), header)
}

func sendBody(ctx context.Context, c *http.Client, method, to string, body io.Reader, header http.Header) error {
	r, err := http.NewRequestWithContext(ctx, method, to, body)
	if err != nil {
		return err
	}
	r.Header = header.Clone()
	resp, err := c.Do(r)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
