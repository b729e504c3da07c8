package api

import (
	"encoding/base32"
	"fmt"
	"strings"
)

// kind names what an [ID] identifies; its prefix is part of the id's text.
type kind interface{ prefix() string }

type (
	workspaceKind struct{}
	userKind      struct{}
	agentKind     struct{}
	workerKind    struct{}
	sessionKind   struct{}
	threadKind    struct{}
	claimKind     struct{}
	activityKind  struct{}
	promptKind    struct{}
	signalKind    struct{}
	tokenKind     struct{}
	ledgerKind    struct{}
	webhookKind   struct{}
	channelKind   struct{}
	deliveryKind  struct{}
	triggerKind   struct{}
	inviteKind    struct{}
	keyKind       struct{}
	messageKind   struct{}
	identityKind  struct{}
	clientKind    struct{}
	taskKind      struct{}
	commentKind   struct{}
	landingKind   struct{}
	reviewKind    struct{}
	fileKind      struct{}
)

func (workspaceKind) prefix() string { return "wsp" }
func (userKind) prefix() string      { return "usr" }
func (agentKind) prefix() string     { return "agt" }
func (workerKind) prefix() string    { return "wrk" }
func (sessionKind) prefix() string   { return "ses" }
func (threadKind) prefix() string    { return "thr" }
func (claimKind) prefix() string     { return "clm" }
func (activityKind) prefix() string  { return "act" }
func (promptKind) prefix() string    { return "pmt" }
func (signalKind) prefix() string    { return "sig" }
func (tokenKind) prefix() string     { return "tok" }
func (ledgerKind) prefix() string    { return "slt" }
func (webhookKind) prefix() string   { return "whk" }
func (channelKind) prefix() string   { return "chn" }
func (deliveryKind) prefix() string  { return "dlv" }
func (triggerKind) prefix() string   { return "trg" }
func (inviteKind) prefix() string    { return "inv" }
func (keyKind) prefix() string       { return "key" }
func (messageKind) prefix() string   { return "msg" }
func (identityKind) prefix() string  { return "idn" }
func (clientKind) prefix() string    { return "app" }
func (taskKind) prefix() string      { return "tsk" }
func (commentKind) prefix() string   { return "cmt" }
func (landingKind) prefix() string   { return "lnd" }
func (reviewKind) prefix() string    { return "rvw" }
func (fileKind) prefix() string      { return "att" }

// ID is a strictly increasing number of at most 50 bits made by the store: seconds since 2024
// in its upper 32 bits. Outside the store it is written as a prefix and 10 base32 digits
// ("ses_02r3v0n8e2"), so that texts sort as the numbers do. The zero ID means "none" and is
// written as the empty string.
type ID[K kind] int64

// The ids of the product's nouns.
type (
	WorkspaceID = ID[workspaceKind]
	UserID      = ID[userKind]
	AgentID     = ID[agentKind]
	WorkerID    = ID[workerKind]
	SessionID   = ID[sessionKind]
	ThreadID    = ID[threadKind]
	ClaimKey    = ID[claimKind]
	ActivityID  = ID[activityKind]
	PromptID    = ID[promptKind]
	SignalID    = ID[signalKind]
	TokenID     = ID[tokenKind]
	LedgerID    = ID[ledgerKind]
	WebhookID   = ID[webhookKind]
	ChannelID   = ID[channelKind]
	DeliveryID  = ID[deliveryKind]
	TriggerID   = ID[triggerKind]
	InviteID    = ID[inviteKind]
	KeyID       = ID[keyKind]
	MessageID   = ID[messageKind]
	IdentityID  = ID[identityKind]
	ClientID    = ID[clientKind]
	TaskID      = ID[taskKind]
	CommentID   = ID[commentKind]
	LandingID   = ID[landingKind]
	ReviewID    = ID[reviewKind]

	AttachmentID = ID[fileKind]
)

// Crockford's alphabet in lower case: no i, l, o, u, and it sorts as ASCII.
const digits = "0123456789abcdefghjkmnpqrstvwxyz"

const idDigits = 10

// String returns the id's text, or "" for the zero id.
func (id ID[K]) String() string {
	if id == 0 {
		return ""
	}
	var k K
	var b [4 + idDigits]byte
	copy(b[:], k.prefix())
	b[3] = '_'
	n := uint64(id)
	for i := len(b) - 1; i > 3; i-- {
		b[i] = digits[n&31]
		n >>= 5
	}
	return string(b[:])
}

// MarshalText writes the id as [ID.String] does.
func (id ID[K]) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText wrote; the empty text is the zero id.
func (id *ID[K]) UnmarshalText(text []byte) error {
	got, err := ParseID[K](string(text))
	if err != nil {
		return err
	}
	*id = got
	return nil
}

// ParseWorkspaceID reads a workspace's id.
func ParseWorkspaceID(text string) (WorkspaceID, error) { return ParseID[workspaceKind](text) }

// ParseAgentID reads an agent's id.
func ParseAgentID(text string) (AgentID, error) { return ParseID[agentKind](text) }

// ParseWorkerID reads a worker's id.
func ParseWorkerID(text string) (WorkerID, error) { return ParseID[workerKind](text) }

// ParsePromptID reads a prompt's id.
func ParsePromptID(text string) (PromptID, error) { return ParseID[promptKind](text) }

// ParseSessionID reads a session's id.
func ParseSessionID(text string) (SessionID, error) { return ParseID[sessionKind](text) }

// ParseTaskID reads a task's id.
func ParseTaskID(text string) (TaskID, error) { return ParseID[taskKind](text) }

// ParseUserID reads a user's id.
func ParseUserID(text string) (UserID, error) { return ParseID[userKind](text) }

// ParseID reads the text of an id of kind K. The empty text is the zero id; anything else that
// is not a complete id with the right prefix is an error, and so is an id of only zeros:
// nothing has that id, and it must not pass for "none".
func ParseID[K kind](text string) (ID[K], error) {
	var k K
	if text == "" {
		return 0, nil
	}
	rest, ok := strings.CutPrefix(text, k.prefix()+"_")
	if !ok || len(rest) != idDigits {
		return 0, fmt.Errorf("%q is no id of the form %s_ and %d characters", text, k.prefix(), idDigits)
	}
	var n uint64
	for _, c := range []byte(rest) {
		d := strings.IndexByte(digits, c)
		if d < 0 {
			return 0, fmt.Errorf("%q is no id: %q is not one of its characters", text, c)
		}
		n = n<<5 | uint64(d)
	}
	if n == 0 {
		return 0, fmt.Errorf("%q is no id: nothing has it", text)
	}
	return ID[K](n), nil
}

// ClaimID is a claim's public id: its key and 128 random bits, which make it the proof of the
// claim. It is never logged or shown whole.
type ClaimID struct {
	Key    ClaimKey
	Secret [16]byte
}

// NewClaimID is the public id of a claim by the two parts that are stored.
func NewClaimID(key ClaimKey, secret []byte) ClaimID {
	id := ClaimID{Key: key}
	copy(id.Secret[:], secret)
	return id
}

var secretEncoding = base32.NewEncoding(digits).WithPadding(base32.NoPadding)

// IsZero reports whether no claim id was given.
func (id ClaimID) IsZero() bool { return id == ClaimID{} }

// String returns the whole id, the secret part included.
func (id ClaimID) String() string {
	if id.IsZero() {
		return ""
	}
	return id.Key.String() + secretEncoding.EncodeToString(id.Secret[:])
}

// MarshalText writes the id as [ClaimID.String] does.
func (id ClaimID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads a claim id. An invalid text becomes an id that matches no claim, so that
// a garbled id is answered like any expired one (contract 4.3); the empty text is the zero id.
func (id *ClaimID) UnmarshalText(text []byte) error {
	*id = ClaimID{}
	if len(text) == 0 {
		return nil
	}
	const head = 4 + idDigits
	id.Key = -1
	if len(text) < head {
		return nil
	}
	key, err := ParseID[claimKind](string(text[:head]))
	if err != nil {
		return nil
	}
	secret, err := secretEncoding.DecodeString(string(text[head:]))
	if err != nil || len(secret) != len(id.Secret) {
		return nil
	}
	id.Key = key
	copy(id.Secret[:], secret)
	return nil
}
