package api

// ChannelScope says whom a channel tells.
type ChannelScope string

// The scopes of channels.
const (
	ScopePerson    ChannelScope = "person"    // who made it: of everything that they may see
	ScopeWorkspace ChannelScope = "workspace" // everybody who reads it: of nobody's local sessions
)

// Cause is a kind of happening that a channel tells.
type Cause string

// The causes.
const (
	CauseNeedsYou  Cause = "needs_you" // a question waits
	CauseFailed    Cause = "failed"    // an agent's first failure, not each that follows
	CauseRecovered Cause = "recovered" // its first success after failures
	CauseFailing   Cause = "failing"   // it failed N times in a row, or was paused for that

	CauseSchedule   Cause = "schedule"    // a schedule was due and nothing ran
	CauseWorkerLost Cause = "worker_lost" // a worker vanished with work that no other takes up
	CauseSpendLimit Cause = "spend_limit" // an agent or a run reached it
	CauseDisk       Cause = "disk"        // little or no room is left for the database
	CauseBackup     Cause = "backup"      // the scheduled backup failed or is overdue
)

// CauseWords says what a cause means.
type CauseWords struct {
	Cause   Cause
	Means   string
	Default bool // told without any choice
}

// Causes are all of them, in the order of a form.
var Causes = []CauseWords{
	{CauseNeedsYou, "a question waits for an answer", true},
	{CauseFailed, "a run failed, the first time in a row", true},
	{CauseRecovered, "the first run that succeeded after failures, and other trouble that is over", true},
	{CauseFailing, "failures in a row, and an agent that they paused", true},
	{CauseSchedule, "a schedule was due and nothing ran", true},
	{CauseWorkerLost, "a worker vanished with work", true},
	{CauseSpendLimit, "a spend limit was reached", true},
	{CauseDisk, "the disk or the database is nearly full", true},
	{CauseBackup, "the backup failed or is overdue", true},
}

// DefaultCauses are what a channel tells without any choice.
func DefaultCauses() Labels {
	out := Labels{}
	for _, c := range Causes {
		if c.Default {
			out = append(out, string(c.Cause))
		}
	}
	return out.Normal()
}

// ChannelKind is a service that a channel can send to.
type ChannelKind struct{ Scheme, Name, Pattern, Means string }

// ChannelKinds are the services that a channel can send to: the scheme of the address, the
// service's name, how the address is written, and where its parts come from.
var ChannelKinds = []ChannelKind{
	{"ntfy", "ntfy", "ntfy://[USER:PASSWORD@]ntfy.sh/TOPIC", "a topic of ntfy.sh or of your own ntfy server"},
	{"slack", "Slack", "slack://hook:TTTT-BBBB-XXXX@webhook", "the three last parts of an incoming webhook's address, joined by -"},
	{"discord", "Discord", "discord://TOKEN@WEBHOOK_ID", "the two last parts of a webhook's address, the id behind the @"},
	{"telegram", "Telegram", "telegram://TOKEN@telegram?chats=CHAT_ID", "a bot's token, and the chat that it writes to"},
	{"gotify", "Gotify", "gotify://gotify.example.org/TOKEN", "an application's token on your Gotify server"},
	{"matrix", "Matrix", "matrix://:TOKEN@matrix.example.org/?rooms=!ROOM:example.org", "an access token, and the id of a room that its user is in"},
	{"mattermost", "Mattermost", "mattermost://mattermost.example.org/TOKEN", "the last part of an incoming webhook's address"},
	{"rocketchat", "Rocket.Chat", "rocketchat://chat.example.org/TOKEN_A/TOKEN_B", "the two last parts of an incoming webhook's address"},
	{"pushover", "Pushover", "pushover://shoutrrr:APP_TOKEN@USER_KEY/", "an application's token and your user key"},
	{"smtp", "Mail", "smtp://USER:PASSWORD@mail.example.org:587/?from=stint@example.org&to=you@example.org", "a mail server with TLS (port 465, or 587 with STARTTLS), the sender and the recipients"},
	{"generic", "Webhook", "generic://example.org/path?template=json", "an https address that takes JSON with title and message"},
}

// ChannelsInside says what a service of one's own network needs.
const ChannelsInside = "A server of your own network needs stint serve --webhooks-inside, and ?disabletls=yes (ntfy: ?scheme=http) if it speaks no https."

// ChannelInput is what people set on a channel: the body of a creation, and what a PATCH is
// merged into.
type ChannelInput struct {
	URL         string       `json:"url,omitzero"` // a secret: never in an answer; absent in a PATCH = as it is
	Description string       `json:"description"`
	Scope       ChannelScope `json:"scope"`  // set once
	Causes      Labels       `json:"causes"` // absent or null = the default set
	Details     bool         `json:"details"`
	Enabled     bool         `json:"enabled"`

	// When it tells. The times are HH:MM in the zone, which must be named with them; empty = none.
	QuietFrom string `json:"quietFrom"` // from then on nothing is told …
	QuietTo   string `json:"quietTo"`   // … until then
	DigestAt  string `json:"digestAt"`  // all that happened, once a day
	TimeZone  string `json:"timeZone"`
}

// Channel tells people what happens, through a service of their choice.
type Channel struct {
	ID     ChannelID `json:"id"`
	Target string    `json:"target"` // what may be shown of the address
	ChannelInput
	DisabledReason string `json:"disabledReason,omitzero"`
	CreatedAt      Time   `json:"createdAt"`
}

// ChannelDelivery is one message of a channel and what happened to it.
type ChannelDelivery struct {
	ID         DeliveryID    `json:"id"`
	ChannelID  ChannelID     `json:"channelId"`
	Cause      Cause         `json:"cause,omitzero"` // empty for a test
	Title      string        `json:"title"`
	Text       string        `json:"text"`
	Path       string        `json:"path"` // of the page that it is about
	State      DeliveryState `json:"state"`
	Tries      int64         `json:"tries"`
	NextTryAt  Time          `json:"nextTryAt,omitzero"`
	TriedAt    Time          `json:"triedAt,omitzero"`
	StatusCode int64         `json:"statusCode,omitzero"`
	Answer     string        `json:"answer,omitzero"`   // its first KiB
	Problem    string        `json:"problem,omitzero"`  // why it didn't arrive
	HeldBack   string        `json:"heldBack,omitzero"` // why it wasn't told at once
	PartOf     DeliveryID    `json:"partOf,omitzero"`   // the one whose message told this, too
	CreatedAt  Time          `json:"createdAt"`
	EndedAt    Time          `json:"endedAt,omitzero"`
}
