package setup

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/workflow"
)

// Accepted is what an owner accepted of other people's content for an agent, in exactly the
// form that it had then. contract 10.2
type Accepted struct {
	Run      *AcceptedRun      `toml:"run,omitempty"`
	Workflow *AcceptedWorkflow `toml:"workflow,omitempty"`
	Uses     []AcceptedUse     `toml:"uses,omitempty" comment:"Files and folders that the agent's program may load, in exactly this form."`
}

// AcceptedUse is something that a program may load (see [agent.Source]) in the form in which it was
// accepted. Several forms of one name may be: worktrees are of several commits.
type AcceptedUse struct {
	Use    string    `toml:"use"`
	Name   string    `toml:"name"`
	Digest string    `toml:"digest"`
	At     time.Time `toml:"at"`
}

const mostAcceptedUses = 200 // the oldest go first

// Unaccepted are those sources that have to be accepted and aren't in the form that they have now.
func (a Accepted) Unaccepted(sources []agent.Source) (out []agent.Source) {
	for _, s := range sources {
		if s.Asks() && !slices.ContainsFunc(a.Uses, func(u AcceptedUse) bool { return u.Use == s.Use && u.Name == s.Name && u.Digest == s.Digest }) {
			out = append(out, s)
		}
	}
	return out
}

// With is what was accepted with further sources, as they are now.
func (a Accepted) With(sources []agent.Source, at time.Time) Accepted {
	for _, s := range a.Unaccepted(sources) {
		a.Uses = append(slices.Clip(a.Uses), AcceptedUse{Use: s.Use, Name: s.Name, Digest: s.Digest, At: at})
	}
	a.Uses = a.Uses[max(0, len(a.Uses)-mostAcceptedUses):]
	return a
}

// AcceptedRun is what an agent record executed when it was accepted.
type AcceptedRun struct {
	Digest string    `toml:"digest"` // see [RunDigest]
	SetBy  string    `toml:"set_by,omitempty" comment:"who had changed it last"`
	At     time.Time `toml:"at"`
}

// AcceptedWorkflow is what a workflow file executed when it was accepted. It is kept whole, so
// that a worker can continue with it when the file changes.
type AcceptedWorkflow struct {
	Path      string             `toml:"path"`
	Digest    string             `toml:"digest"`
	At        time.Time          `toml:"at"`
	Executing workflow.Executing `toml:"executing"`
}

// RunDigest names what an agent record makes a worker do: its type, its run block and its
// instructions, the parts for which the coordinator records who changed them. An empty member
// counts as a missing one, so that the record and a claim of it have one digest.
func RunDigest(kind api.AgentType, run api.Run, instructions string) (string, error) {
	text, err := json.Marshal(run)
	if err != nil {
		return "", fmt.Errorf("name the run block: %w", err)
	}
	var members any
	if err := json.Unmarshal(text, &members); err != nil {
		return "", fmt.Errorf("name the run block: %w", err)
	}
	text, err = json.Marshal([]any{kind, full(members), instructions}, json.Deterministic(true))
	if err != nil {
		return "", fmt.Errorf("name the run block: %w", err)
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// full leaves out the members of objects that are empty.
func full(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, member := range v {
			switch member := full(member).(type) {
			case nil:
			case string:
				if member != "" {
					out[name] = member
				}
			case bool:
				if member {
					out[name] = member
				}
			case float64:
				if member != 0 {
					out[name] = member
				}
			case []any:
				if len(member) > 0 {
					out[name] = member
				}
			case map[string]any:
				if len(member) > 0 {
					out[name] = member
				}
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = full(v[i])
		}
		return out
	}
	return v
}

// Accepted reads what was accepted for an agent; the zero value when nothing was.
func (f Files) Accepted(slug string) (Accepted, error) {
	path, err := f.path("accepted", slug)
	if err != nil {
		return Accepted{}, err
	}
	var a Accepted
	if _, err := decode(path, &a); err != nil {
		return Accepted{}, err
	}
	if w := a.Workflow; w != nil && w.Executing.Digest() != w.Digest {
		return Accepted{}, fmt.Errorf("%s: workflow.executing is not what workflow.digest names", path)
	}
	return a, nil
}

// Accept replaces what was accepted for an agent.
func (f Files) Accept(slug string, a Accepted) error {
	path, err := f.path("accepted", slug)
	if err != nil {
		return err
	}
	return encode(path, "Written by stint worker trust "+slug+".", a)
}

// Runs reports whether a run block in exactly this form was accepted.
func (a Accepted) Runs(digest string) bool { return a.Run != nil && a.Run.Digest == digest }

// Follow is the workflow to run by: the file as it is if its executing parts were accepted or
// there are none; else, with changed true, the file with the parts that were accepted last, so
// that what was changed doesn't run. If it was never accepted, the file runs nothing of its
// own: no hook, no command, no place.
//
// The error is about accepted parts that are no longer valid.
func (a Accepted) Follow(w workflow.Workflow) (follow workflow.Workflow, changed bool, err error) {
	now := w.Executing()
	if len(now) == 0 {
		return w, false, nil
	}
	last := workflow.Executing{}
	if a.Workflow != nil && a.Workflow.Path == w.Path {
		if a.Workflow.Digest == now.Digest() {
			return w, false, nil
		}
		last = a.Workflow.Executing
	}
	follow, err = w.With(last)
	return follow, true, err
}
