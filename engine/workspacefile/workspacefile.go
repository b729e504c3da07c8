// Package workspacefile reads and writes a whole workspace as one JSON document, so that another
// one can be made of it: what people set, and nothing secret.
package workspacefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
	"stint/engine"
	"stint/engine/taskfile"
)

// Version is that of the documents that are written, and the only one that is read.
const Version = 1

// Document is a workspace. Sessions, their output, people, tokens and keys aren't in it.
type Document struct {
	Version     int64          `json:"version"`
	LeftOut     []string       `json:"leftOut"` // what whoever made it had no right to read
	Agents      []Agent        `json:"agents"`
	Tasks       []taskfile.Row `json:"tasks"`
	Webhooks    []Webhook      `json:"webhooks"`
	Channels    []Channel      `json:"channels"`
	TriggerURLs []TriggerURL   `json:"triggerUrls"`
}

// Agent is what people set on an agent, but for as whom it runs: that is whoever imports it.
type Agent struct {
	api.AgentInput
	RunsAsUserID noMember `json:"runsAsUserId,omitzero"` // hides that of the settings
}

// noMember is a member that no document has.
type noMember struct{}

// UnmarshalJSON refuses it, as every member that isn't known.
func (*noMember) UnmarshalJSON([]byte) error { return json.ErrUnknownName }

// Webhook is what people set on a webhook. The path of its address may be a secret.
type Webhook struct {
	Target      string     `json:"target"` // scheme and host of the address
	Description string     `json:"description"`
	Types       api.Labels `json:"types"`
	Enabled     bool       `json:"enabled"`
}

// Channel is what people set on a channel, without its address.
type Channel struct {
	Target      string           `json:"target"` // what may be shown of the address
	Description string           `json:"description"`
	Scope       api.ChannelScope `json:"scope"`
	Causes      api.Labels       `json:"causes"`
	Details     bool             `json:"details"`
	Enabled     bool             `json:"enabled"`
	QuietFrom   string           `json:"quietFrom"`
	QuietTo     string           `json:"quietTo"`
	DigestAt    string           `json:"digestAt"`
	TimeZone    string           `json:"timeZone"`
}

// TriggerURL is an address that starts an agent, without the address.
type TriggerURL struct {
	Agent       string              `json:"agent"` // slug
	Signature   api.SignatureScheme `json:"signature"`
	Description string              `json:"description"`
}

// AgentOf is an agent as a document has it.
func AgentOf(a api.Agent) Agent { return Agent{AgentInput: a.AgentInput} }

// WebhookOf is a webhook as a document has it.
func WebhookOf(w api.Webhook) Webhook {
	out := Webhook{Description: w.Description, Types: w.Types.Normal(), Enabled: w.Enabled}
	if u, err := url.Parse(w.URL); err == nil {
		out.Target = (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
	}
	return out
}

// ChannelOf is a channel as a document has it.
func ChannelOf(c api.Channel) Channel {
	return Channel{
		Target: c.Target, Description: c.Description, Scope: c.Scope, Causes: c.Causes, Details: c.Details, Enabled: c.Enabled,
		QuietFrom: c.QuietFrom, QuietTo: c.QuietTo, DigestAt: c.DigestAt, TimeZone: c.TimeZone,
	}
}

// TriggerURLOf is an address that starts the agent of a slug, as a document has it.
func TriggerURLOf(agent string, t api.TriggerURL) TriggerURL {
	return TriggerURL{Agent: agent, Signature: t.Signature, Description: t.Description}
}

// Write writes a document.
func Write(w io.Writer, d Document) error {
	d.Version = Version
	if err := json.MarshalWrite(w, d, json.Deterministic(true), jsontext.WithIndent("  ")); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// part is one member of a document as it stands in the file.
type part struct {
	value jsontext.Value
	line  int // on which it begins
}

// Read reads a document. bad are its tasks that can't be read; err is what keeps all from being
// read, such as another version, or a member that this one doesn't have, by its name.
func Read(text []byte) (d Document, bad []taskfile.BadRow, err error) {
	parts, err := partsOf(bytes.TrimPrefix(text, []byte("\ufeff")))
	if err != nil {
		return d, nil, err
	}
	if err := readVersion(parts["version"].value, &d.Version); err != nil {
		return d, nil, err
	}
	read := map[string]func(part) error{
		"version":  func(part) error { return nil },
		"leftOut":  func(p part) error { return json.Unmarshal(p.value, &d.LeftOut) },
		"agents":   func(p part) (err error) { d.Agents, err = list("agents", p.value, newAgent); return err },
		"webhooks": func(p part) (err error) { d.Webhooks, err = list("webhooks", p.value, blank[Webhook]); return err },
		"channels": func(p part) (err error) { d.Channels, err = list("channels", p.value, blank[Channel]); return err },
		"triggerUrls": func(p part) (err error) {
			d.TriggerURLs, err = list("triggerUrls", p.value, blank[TriggerURL])
			return err
		},
		"tasks": func(p part) (err error) {
			if p.value.Kind() != '[' {
				return errors.New("tasks: is no list")
			}
			// The lines before it make the lines of its rows those of the document.
			d.Tasks, bad, err = taskfile.Read(append(bytes.Repeat([]byte("\n"), p.line-1), p.value...))
			return err
		},
	}
	names := make([]string, 0, len(parts))
	for name := range parts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		do, known := read[name]
		if !known {
			return d, nil, fmt.Errorf("there is no member %q in a document of a workspace", name)
		}
		if err := do(parts[name]); err != nil {
			return d, nil, err
		}
	}
	return d, bad, nil
}

func readVersion(value jsontext.Value, version *int64) error {
	if value == nil {
		return errors.New("it has no version, so it is no document that stint export wrote")
	}
	if err := json.Unmarshal(value, version); err != nil || *version != Version {
		return fmt.Errorf("its version is %s, and this program reads version %d: export it, or import it, with another version of Stint", value, Version)
	}
	return nil
}

// partsOf are the members of a document by name.
func partsOf(text []byte) (map[string]part, error) {
	lineAt := func(offset int64) int { return 1 + bytes.Count(text[:min(offset, int64(len(text)))], []byte("\n")) }
	in := jsontext.NewDecoder(bytes.NewReader(text))
	broken := func(err error) error {
		at := in.InputOffset()
		var syntax *jsontext.SyntacticError
		if errors.As(err, &syntax) {
			at, err = syntax.ByteOffset, syntax.Err
		}
		return fmt.Errorf("line %d is no JSON of a workspace: %w", lineAt(at), err)
	}
	if start, err := in.ReadToken(); err != nil {
		return nil, broken(err)
	} else if start.Kind() != '{' {
		return nil, broken(errors.New("a document is one object"))
	}
	parts := map[string]part{}
	for in.PeekKind() != '}' {
		token, err := in.ReadToken()
		if err != nil {
			return nil, broken(err)
		}
		name := token.String()
		value, err := in.ReadValue()
		if err != nil {
			return nil, broken(err)
		}
		parts[name] = part{value.Clone(), lineAt(in.InputOffset() - int64(len(value)))}
	}
	if _, err := in.ReadToken(); err != nil {
		return nil, broken(err)
	}
	if _, err := in.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, broken(errors.New("something stands behind the document"))
	}
	return parts, nil
}

func blank[T any]() (t T) { return t }

// newAgent is what members that a document leaves out mean.
func newAgent() Agent { return Agent{AgentInput: engine.DefaultConfig().DefaultAgent()} }

// list reads the things of a member, each upon a new one.
func list[T any](name string, value jsontext.Value, made func() T) ([]T, error) {
	var values []jsontext.Value
	if err := json.Unmarshal(value, &values); err != nil {
		return nil, fmt.Errorf("%s: is no list", name)
	}
	out := make([]T, len(values))
	for i, one := range values {
		out[i] = made()
		if err := json.Unmarshal(one, &out[i], json.RejectUnknownMembers(true)); err != nil {
			return nil, misread(fmt.Sprintf("%s[%d]", name, i), err)
		}
	}
	return out, nil
}

// misread puts into words why a value isn't what a document has there.
func misread(where string, err error) error {
	var meaning *json.SemanticError
	if !errors.As(err, &meaning) {
		return fmt.Errorf("%s: %s", where, api.Plain(err))
	}
	path := strings.ReplaceAll(strings.TrimPrefix(string(meaning.JSONPointer), "/"), "/", ".")
	if errors.Is(err, json.ErrUnknownName) {
		return fmt.Errorf("%s: there is no member %q", where, path)
	}
	if path != "" {
		where += "." + path
	}
	return fmt.Errorf("%s: is of the wrong type", where)
}
