package server_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"testing"

	"stint/account"
	"stint/api"
	"stint/server/servertest"
)

const instance = "boot-1"

// fixture is a coordinator with one agent and one worker for it.
type fixture struct {
	*servertest.Server
	tb     testing.TB
	agent  api.Agent
	worker api.Worker
}

func newFixture(tb testing.TB, o servertest.Options) *fixture {
	tb.Helper()
	d := &fixture{Server: servertest.New(tb, o), tb: tb}
	d.agent = d.addAgent("tidy", 1000)
	d.worker = d.addWorker("tidy", "w1")
	return d
}

func (d *fixture) addAgent(slug string, most int) api.Agent {
	d.tb.Helper()
	return servertest.Must[api.Agent](d.Server, http.StatusCreated, "POST", "agents", map[string]any{
		"slug": slug, "name": "Tidy up", "run": map[string]any{"command": []string{"true"}}, "maxConcurrent": most,
	})
}

func (d *fixture) addWorker(agent, name string) api.Worker {
	d.tb.Helper()
	return servertest.Must[api.Registered](d.Server, http.StatusCreated, "POST", "agents/"+agent+"/workers", api.WorkerInput{
		Name: name, InstanceID: instance, Types: []api.AgentType{api.TypeCommand}, MaxConcurrent: 1000,
	}).Worker
}

func (d *fixture) addSession() api.Session {
	d.tb.Helper()
	return servertest.Must[api.Session](d.Server, http.StatusCreated, "POST", "agents/tidy/sessions", map[string]any{"prompt": "Say hello."})
}

// at is the path of a verb of the fixture's worker on a session.
func (d *fixture) at(s api.SessionID, verb string) string {
	return fmt.Sprintf("agents/%s/workers/%s/sessions/%s%s", d.agent.ID, d.worker.ID, s, verb)
}

func (d *fixture) claim(s api.SessionID) api.Claim {
	d.tb.Helper()
	return servertest.Must[api.Claim](d.Server, http.StatusOK, "POST", d.at(s, "/claim"), map[string]any{"instanceId": instance})
}

// running creates a session and claims it.
func (d *fixture) running() api.Claim {
	d.tb.Helper()
	return d.claim(d.addSession().ID)
}

func proof(c api.Claim) map[string]any {
	return map[string]any{"claimId": c.ClaimID.String(), "instanceId": instance}
}

func with(body map[string]any, more map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range body {
		out[k] = v
	}
	for k, v := range more {
		out[k] = v
	}
	return out
}

// stranger creates a user of another workspace, with an agent, a session and a worker of their
// own.
func (d *fixture) stranger() (agent api.Agent, session api.Session, worker api.Worker) {
	d.tb.Helper()
	const base = "/api/v1/workspaces/elsewhere/"
	s := d.As(d.AddUser("elsewhere", api.Owner))
	agent = servertest.Must[api.Agent](s, http.StatusCreated, "POST", base+"agents", map[string]any{
		"slug": "secret-agent", "run": map[string]any{"command": []string{"true"}},
	})
	session = servertest.Must[api.Session](s, http.StatusCreated, "POST", base+"agents/secret-agent/sessions", map[string]any{"prompt": "canary"})
	worker = servertest.Must[api.Registered](s, http.StatusCreated, "POST", base+"agents/secret-agent/workers", api.WorkerInput{
		Name: "theirs", InstanceID: instance, Types: []api.AgentType{api.TypeCommand}, MaxConcurrent: 1,
	}).Worker
	return agent, session, worker
}

// altered is text with another letter at i.
func altered(text string, i int) string {
	letter := "x"
	if text[i] == 'x' {
		letter = "y"
	}
	return text[:i] + letter + text[i+1:]
}

// programOf signs in, for the owner, a program that registered itself and returns its access
// token.
func (d *fixture) programOf() string {
	d.tb.Helper()
	const there, verifier = "https://a.test/cb", "a verifier of forty-three letters and a few"
	ctx := d.tb.Context()
	client, err := d.Accounts.Register(ctx, account.Registration{Name: "Assistant", Redirects: []string{there}}, account.From{})
	if err != nil {
		d.tb.Fatal(err)
	}
	owner, err := d.Accounts.Owner(ctx)
	if err != nil {
		d.tb.Fatal(err)
	}
	sum := sha256.Sum256([]byte(verifier))
	code, err := d.Accounts.GiveCode(ctx, owner, account.Grant{Client: client.ID, Redirect: there, Challenge: base64.RawURLEncoding.EncodeToString(sum[:])})
	if err != nil {
		d.tb.Fatal(err)
	}
	tokens, err := d.Accounts.TradeCode(ctx, account.Presented{Client: client.ID}, code, there, verifier)
	if err != nil {
		d.tb.Fatal(err)
	}
	return tokens.Access
}
