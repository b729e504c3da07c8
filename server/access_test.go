package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"stint/account"
	"stint/api"
	"stint/server/servertest"
)

// The columns of the table: who asks. Keys act for the owner, and so do the agent of another
// session, with its run's token, and a program that registered itself.
const columns = "nobody viewer member admin owner foreigner read trigger cancel tasks run program"

// access is the whole table of who may do what, a row for each operation of the document. + is
// allowed, 1 is 401, 3 is 403 forbidden, 4 is 404, u is 403 user_token_required, and * is
// allowed but shows only what is the caller's own: 200. Rows with a session stand for a cloud
// session; a local one of the owner's is the owner's alone, and anybody else gets 404
// (contract 8.3).
var access = map[string]string{
	"GET /healthz": "+ + + + + + + + + + + +",
	"GET /readyz":  "+ + + + + + + + + + + +",
	"GET /metrics": "1 4 4 4 4 4 4 4 4 4 4 4", // without a token of their own set

	// Here programs sign people in: what they send is checked, not who they are.
	"GET /.well-known/oauth-authorization-server": "+ + + + + + + + + + + +",
	"GET /.well-known/oauth-protected-resource":   "+ + + + + + + + + + + +",
	"POST /oauth/token":                           "+ + + + + + + + + + + +",
	"POST /oauth/device":                          "+ + + + + + + + + + + +",
	"POST /oauth/revoke":                          "+ + + + + + + + + + + +",

	"POST /oauth/register":              "4 4 4 4 4 4 4 4 4 4 4 4", // off unless the operator allows it
	"GET /api/v1/programs":              "1 3 3 3 + + u u u u u u",
	"DELETE /api/v1/programs/{program}": "1 3 3 3 4 4 u u u u u u",

	"GET /openapi.json": "1 + + + + + + + + + + +",
	"GET /openapi.yaml": "1 + + + + + + + + + + +",

	"GET /api/v1/whoami":                           "1 + + + + + + + + + + +",
	"GET /api/v1/workspaces":                       "1 + + + + + + + + + + +",
	"POST /api/v1/workspaces":                      "1 3 3 3 + + u u u u u +",
	"POST /api/v1/signin-links":                    "1 + + + + + u u u u u u",
	"GET /api/v1/account":                          "1 + + + + + u u u u u u",
	"POST /api/v1/account/login":                   "1 + + + + + u u u u u u",
	"POST /api/v1/account/invitation":              "1 n n n n n u u u u u u",
	"GET /api/v1/account/sign-ins":                 "1 + + + + + u u u u u u",
	"DELETE /api/v1/account/sign-ins/{signin}":     "1 4 4 4 4 4 u u u u u u",
	"POST /api/v1/account/sign-out-everywhere":     "1 + + + + + u u u u u u",
	"DELETE /api/v1/account/identities/{identity}": "1 4 4 4 4 4 u u u u u u",

	"GET W":                             "1 + + + + 4 + + + + + +",
	"PATCH W":                           "1 3 3 + + 4 u u u u u +",
	"GET W/members":                     "1 + + + + 4 u u u u u +",
	"PATCH W/members/{user}":            "1 3 3 3 + 4 u u u u u u",
	"DELETE W/members/{user}":           "1 3 3 3 + 4 u u u u u u",
	"GET W/invitations":                 "1 3 3 3 + 4 u u u u u u",
	"POST W/invitations":                "1 3 3 3 + 4 u u u u u u",
	"DELETE W/invitations/{invitation}": "1 3 3 3 + 4 u u u u u u",
	"GET W/keys":                        "1 3 + + + 4 u u u u u u",
	"POST W/keys":                       "1 3 + + + 4 u u u u u u",
	"DELETE W/keys/{key}":               "1 3 4 + + 4 u u u u u u",

	"GET W/agents":                    "1 + + + + 4 + 3 3 3 u +",
	"POST W/agents":                   "1 3 3 + + 4 u u u u u +",
	"GET W/agents/{agent}":            "1 + + + + 4 + 3 3 3 u +",
	"PATCH W/agents/{agent}":          "1 3 3 + + 4 u u u u u +",
	"DELETE W/agents/{agent}":         "1 3 3 3 + 4 u u u u u +",
	"POST W/agents/{agent}/pause":     "1 3 3 + + 4 u u u u u +",
	"POST W/agents/{agent}/resume":    "1 3 3 + + 4 u u u u u +",
	"POST W/agents/{agent}/skip":      "1 3 3 + + 4 u u u u u +",
	"POST W/agents/{agent}/unskip":    "1 3 3 + + 4 u u u u u +",
	"GET W/agents/{agent}/ledger":     "1 + + + + 4 + 3 3 3 u +",
	"GET W/schedules":                 "1 + + + + 4 + 3 3 3 u +",
	"GET W/status":                    "1 + + + + 4 u u u u u +",
	"GET W/calendar.ics":              "1 + + + + 4 3 3 3 3 u +",
	"GET W/schedules/preview":         "1 + + + + 4 + 3 3 3 u +",
	"GET W/agents/{agent}/sessions":   "1 + + + + 4 + 3 3 3 u +",
	"POST W/agents/{agent}/sessions":  "1 3 3 + + 4 3 + 3 3 + +",
	"GET W/sessions":                  "1 + + + + 4 + 3 3 3 u +",
	"GET W/sessions/counts":           "1 + + + + 4 + 3 3 3 u +",
	"GET W/system":                    "1 3 3 + + 4 u u u u u +",
	"GET W/system/bundle":             "1 3 3 + + 4 u u u u u +",
	"POST W/system/prune":             "1 3 3 3 + 4 u u u u u +",
	"GET W/doctor":                    "1 3 3 + + 4 u u u u u +",
	"GET W/audit":                     "1 3 3 + + 4 u u u u u +",
	"GET W/inbox":                     "1 + + + + 4 + 3 3 3 u +",
	"GET W/events":                    "1 + + + + 4 + 3 3 3 u +",
	"GET W/workers":                   "1 + + + + 4 u u u u u +",
	"GET W/agents/{agent}/workers":    "1 + + + + 4 u u u u u +",
	"POST W/agents/{agent}/workers":   "1 3 3 + + 4 u u u u u +",
	"POST W/claim-next":               "1 4 4 + + 4 u u u u u +",
	"POST W/threads/{t}/late-results": "1 + + + + 4 u u u u u +", // the claim's id is the right

	"GET W/channels":                                            "1 + + + + 4 u u u u u u",
	"POST W/channels":                                           "1 + + + + 4 u u u u u u",
	"GET W/channels/{channel}":                                  "1 4 4 4 + 4 u u u u u u", // the owner's own
	"PATCH W/channels/{channel}":                                "1 4 4 4 + 4 u u u u u u",
	"DELETE W/channels/{channel}":                               "1 4 4 4 + 4 u u u u u u",
	"POST W/channels/{channel}/test":                            "1 4 4 4 + 4 u u u u u u",
	"GET W/channels/{channel}/deliveries":                       "1 4 4 4 + 4 u u u u u u",
	"GET W/channels/{channel}/deliveries/{delivery}":            "1 4 4 4 + 4 u u u u u u",
	"GET W/webhooks":                                            "1 3 3 + + 4 u u u u u u",
	"POST W/webhooks":                                           "1 3 3 + + 4 u u u u u u",
	"GET W/webhooks/{webhook}":                                  "1 3 3 + + 4 u u u u u u",
	"PATCH W/webhooks/{webhook}":                                "1 3 3 + + 4 u u u u u u",
	"DELETE W/webhooks/{webhook}":                               "1 3 3 + + 4 u u u u u u",
	"POST W/webhooks/{webhook}/rotate":                          "1 3 3 + + 4 u u u u u u",
	"POST W/webhooks/{webhook}/test":                            "1 3 3 + + 4 u u u u u u",
	"GET W/webhooks/{webhook}/deliveries":                       "1 3 3 + + 4 u u u u u u",
	"POST W/webhooks/{webhook}/deliveries/{delivery}/redeliver": "1 3 3 + + 4 u u u u u u",
	"GET W/agents/{agent}/trigger-urls":                         "1 3 3 + + 4 u u u u u u",
	"POST W/agents/{agent}/trigger-urls":                        "1 3 3 + + 4 u u u u u u",
	"DELETE W/agents/{agent}/trigger-urls/{trigger}":            "1 3 3 + + 4 u u u u u u",
	"POST /hooks/{address}":                                     "4 4 4 4 4 4 4 4 4 4 4 4", // needs the address and a signature

	"GET W/tasks":                  "1 + + + + 4 + 3 3 3 + +",
	"POST W/tasks":                 "1 3 + + + 4 3 3 3 + u +",
	"GET W/tasks/next":             "1 + + + + 4 + 3 3 3 u +",
	"GET W/tasks/counts":           "1 + + + + 4 + 3 3 3 u +",
	"GET W/tasks/{task}":           "1 + + + + 4 + 3 3 3 4 +",
	"PATCH W/tasks/{task}":         "1 3 + + + 4 3 3 3 + u +",
	"POST W/tasks/{task}/claim":    "1 3 + + + 4 3 3 3 + u +",
	"POST W/tasks/{task}/renew":    "1 3 + + + 4 3 3 3 + 4 +",
	"POST W/tasks/{task}/extend":   "1 3 + + + 4 3 3 3 + 4 +",
	"POST W/tasks/{task}/release":  "1 3 + + + 4 3 3 3 + u +",
	"POST W/tasks/{task}/dispatch": "1 3 3 + + 4 3 3 3 3 u +", // its agent is a cloud agent
	"GET W/tasks/{task}/briefing":  "1 + + + + 4 + 3 3 3 4 +",
	"GET W/tasks/{task}/comments":  "1 + + + + 4 + 3 3 3 4 +",
	"POST W/tasks/{task}/comments": "1 3 + + + 4 3 3 3 + 4 +",
	"GET W/tasks/{task}/events":    "1 + + + + 4 + 3 3 3 4 +",
	"GET W/tasks/{task}/sessions":  "1 + + + + 4 + 3 3 3 u +",

	"GET C":                   "1 + + + + 4 + 3 3 3 u +",
	"POST C":                  "1 3 3 + + 4 3 + 3 3 u +",
	"POST C/{session}/cancel": "1 3 3 + + 4 3 3 + 3 u +",

	"GET W/threads/{t}":   "1 + + + + 4 + 3 3 3 u +",
	"PATCH W/threads/{t}": "1 3 3 + + 4 u u u u u +",

	"GET V/prompts/{prompt}": "1 + + + + 4 u u u u u +", // the prompt's id is unknown, its session is found
	"GET V/messages":         "1 + + + + 4 + 3 3 3 u +",
	"POST V/messages":        "1 3 3 + + 4 u u u u u +",

	"GET V/attachments":              "1 + + + + 4 + 3 3 3 u +",
	"GET V/attachments/{attachment}": "1 + + + + 4 + 3 3 3 u +", // its id is unknown, its session is found

	"GET V":            "1 + + + + 4 + 3 3 3 4 +",
	"GET V/items":      "1 + + + + 4 + 3 3 3 4 +",
	"GET V/output":     "1 + + + + 4 + 3 3 3 4 +",
	"GET V/activities": "1 + + + + 4 + 3 3 3 4 +",
	"GET V/events":     "1 + + + + 4 + 3 3 3 4 +",
	"POST V/cancel":    "1 3 3 + + 4 3 3 + 3 u +",
	"POST V/stop":      "1 3 3 + + 4 3 3 + 3 u +",
	"POST V/retry":     "1 3 3 + + 4 3 + 3 3 u +",
	"POST V/archive":   "1 3 3 + + 4 u u u u u +",
	"POST V/keep":      "1 3 3 + + 4 u u u u u +",
	"DELETE V/keep":    "1 3 3 + + 4 u u u u u +",
	"POST V/answer":    "1 3 3 + + 4 u u u u u +",

	"GET V/changes":                     "1 + + + + 4 + 3 3 3 u +",
	"POST V/landings":                   "1 3 3 + + 4 u u u u u u", // never by what an agent could have in hand
	"GET V/landings/{landing}":          "1 + + + + 4 + 3 3 3 u +",
	"DELETE V/landings/{landing}":       "1 3 3 + + 4 u u u u u u",
	"GET V/review":                      "1 3 3 + + 4 u u u u u +",
	"POST V/review":                     "1 3 3 + + 4 u u u u u +",
	"POST V/review/send":                "1 3 3 + + 4 u u u u u +",
	"DELETE V/review/{comment}":         "1 3 3 + + 4 u u u u u +",
	"POST K/landings/{landing}":         "1 4 4 + + 4 u u u u u +",
	"POST K/sessions/{session}/changes": "1 4 4 + + 4 u u u u u +",

	// The worker is a cloud worker: an admin runs it.
	"GET K":                                "1 + + + + 4 u u u u u +",
	"DELETE K":                             "1 3 3 + + 4 u u u u u +",
	"PATCH K":                              "1 3 3 + + 4 u u u u u +",
	"POST K/control-signal":                "1 3 3 + + 4 u u u u u +",
	"POST K/ack-control-signal":            "1 4 4 + + 4 u u u u u +",
	"GET K/approvals":                      "1 4 4 4 4 4 u u u u u 4", // a local worker's owner's alone
	"POST K/approvals":                     "1 4 4 + + 4 u u u u u +",
	"DELETE K/approvals/{approval}":        "1 4 4 4 4 4 u u u u u 4",
	"POST K/heartbeat":                     "1 4 4 + + 4 u u u u u +",
	"GET K/sessions":                       "1 4 4 + + 4 u u u u u +",
	"POST K/sessions/{session}/claim":      "1 4 4 + + 4 u u u u u +",
	"POST K/sessions/{session}/renew":      "1 4 4 + + 4 u u u u 4 +",
	"POST K/sessions/{session}/extend":     "1 4 4 + + 4 u u u u 4 +",
	"POST K/sessions/{session}/release":    "1 4 4 + + 4 u u u u u +",
	"POST K/sessions/{session}/complete":   "1 4 4 + + 4 u u u u u +",
	"POST K/sessions/{session}/fail":       "1 4 4 + + 4 u u u u u +",
	"PATCH K/sessions/{session}":           "1 4 4 + + 4 u u u u 4 +",
	"POST K/sessions/{session}/activities": "1 4 4 + + 4 u u u u 4 +",
	"POST K/sessions/{session}/items":      "1 4 4 + + 4 u u u u 4 +",
}

// row finds the table's row of an operation.
func row(op servertest.Operation) (string, bool) {
	short := strings.Replace(op.Path, "/api/v1/workspaces/{workspace}", "W", 1)
	for _, long := range []string{"W/agents/{agent}/sessions/{session}", "W/sessions/{session}"} {
		if rest, ok := strings.CutPrefix(short, long); ok {
			short = "V" + rest
		}
	}
	short = strings.Replace(short, "W/agents/{agent}/workers/{worker}", "K", 1)
	short = strings.Replace(short, "{thread}", "{t}", 1)
	short = strings.Replace(short, "/api/workspaces/{workspace}/agents/{agent}/sessions", "C", 1)
	r, ok := access[op.Method+" "+short]
	return r, ok
}

// castle is a fixture with a user in every role.
type castle struct {
	*fixture
	who  map[string]*servertest.Server
	made int
}

func newCastle(t *testing.T) *castle {
	t.Helper()
	c := &castle{fixture: newFixture(t, servertest.Options{}), who: map[string]*servertest.Server{}}
	c.who["nobody"], c.who["owner"] = c.As(""), c.Server
	for _, role := range []api.Role{api.Viewer, api.Member, api.Admin} {
		c.who[string(role)] = c.As(c.AddUser(account.DefaultWorkspace, role))
	}
	c.stranger()
	c.who["foreigner"] = c.As(c.AddUser("elsewhere", api.Owner))
	for _, scope := range api.Scopes {
		made := servertest.Must[api.Key](c.Server, 201, "POST", "keys", m{"name": string(scope), "scopes": []api.Scope{scope}})
		c.who[string(scope)] = c.As(made.Key)
	}
	c.who["run"] = c.As(c.running().RunToken)
	c.who["program"] = c.As(c.programOf())
	return c
}

// request creates what an operation acts on, anew each time, and the call.
func (c *castle) request(op servertest.Operation, mode api.Mode) (path string, body any) {
	c.tb.Helper()
	c.made++
	slug := fmt.Sprintf("thing-%d", c.made)
	a := servertest.Must[api.Agent](c.Server, 201, "POST", "agents", m{"slug": slug, "mode": mode, "run": m{"command": []string{"true"}}, "maxConcurrent": 9})
	w := servertest.Must[api.Registered](c.Server, 201, "POST", "agents/"+slug+"/workers", m{"name": "w", "instanceId": instance, "types": []string{"command"}, "maxConcurrent": 9}).Worker
	s := servertest.Must[api.Session](c.Server, 201, "POST", "agents/"+slug+"/sessions", m{})
	fill := []string{
		"{workspace}", account.DefaultWorkspace, "{agent}", a.Slug, "{worker}", w.ID.String(), "{session}", s.ID.String(), "{thread}", s.ThreadID.String(),
		"{signin}", "tok_0000000001", "{identity}", "idn_0000000001", "{program}", "app_0000000001", "{prompt}", "pmt_0000000001",
		"{landing}", "lnd_0000000001", "{comment}", "rvw_0000000001", "{approval}", "ok-aaaaaa",
	}
	switch {
	case strings.Contains(op.Path, "{user}"):
		u := servertest.Must[api.Whoami](c.As(c.AddUser(account.DefaultWorkspace, api.Viewer)), 200, "GET", "/api/v1/whoami", nil)
		fill = append(fill, "{user}", u.UserID.String())
	case strings.Contains(op.Path, "{invitation}"):
		fill = append(fill, "{invitation}", servertest.Must[api.Invitation](c.Server, 201, "POST", "invitations", m{"role": "viewer"}).ID.String())
	case strings.Contains(op.Path, "{key}"):
		fill = append(fill, "{key}", servertest.Must[api.Key](c.Server, 201, "POST", "keys", m{"name": slug, "scopes": []string{"read"}}).ID.String())
	}
	if strings.Contains(op.Path, "{webhook}") {
		hook := servertest.Must[api.Webhook](c.Server, 201, "POST", "webhooks", m{"url": "https://example.org/"}).ID.String()
		sent := servertest.Must[api.Delivery](c.Server, 200, "POST", "webhooks/"+hook+"/test", nil).ID.String()
		fill = append(fill, "{webhook}", hook, "{delivery}", sent)
	}
	if strings.Contains(op.Path, "{channel}") {
		channel := servertest.Must[api.Channel](c.Server, 201, "POST", "channels", m{"url": "ntfy://ntfy.sh/topic"}).ID.String()
		sent := servertest.Must[api.ChannelDelivery](c.Server, 200, "POST", "channels/"+channel+"/test", nil).ID.String()
		fill = append(fill, "{channel}", channel, "{delivery}", sent)
	}
	if strings.Contains(op.Path, "{trigger}") {
		fill = append(fill, "{trigger}", servertest.Must[api.TriggerURL](c.Server, 201, "POST", "agents/"+slug+"/trigger-urls", nil).ID.String())
	}
	if strings.Contains(op.Path, "{task}") {
		fill = append(fill, "{task}", servertest.Must[api.Task](c.Server, 201, "POST", "tasks", m{"title": slug}).Key)
	}
	path = strings.NewReplacer(fill...).Replace(op.Path)
	if strings.HasSuffix(op.Path, "/preview") {
		path += "?schedule=@daily"
	}
	if !op.Body {
		return path, nil
	}
	if strings.Contains(op.Path, "/tasks") {
		return path, taskBody(op, slug)
	}
	switch op.Method + " " + op.Path[strings.LastIndexByte(op.Path, '/')+1:] {
	case "POST agents":
		return path, m{"slug": slug + "b", "run": m{"command": []string{"true"}}}
	case "PATCH {workspace}":
		return path, m{"name": "Renamed"}
	case "POST workspaces":
		return path, m{"slug": slug}
	case "POST workers":
		return path, m{"name": "w2", "instanceId": instance, "types": []string{"command"}}
	case "PATCH {user}", "POST invitations":
		return path, m{"role": "viewer"}
	case "POST keys":
		return path, m{"name": "x", "scopes": []string{"read"}}
	case "POST login":
		return path, m{"login": slug, "password": ""}
	case "POST channels", "PATCH {channel}":
		return path, m{"url": "ntfy://ntfy.sh/topic"}
	case "POST webhooks", "PATCH {webhook}":
		return path, m{"url": "https://example.org/"}
	case "POST {address}":
		return path, m{}
	case "POST invitation":
		return path, m{"code": "x"}
	case "POST claim-next":
		return path, m{"workerIds": []string{w.ID.String()}, "instanceId": instance}
	case "POST late-results":
		return path, m{"claimId": "clm_gone", "instanceId": instance}
	case "POST activities":
		return path, m{"claimId": "clm_gone", "instanceId": instance, "type": "progress"}
	case "POST items":
		return path, m{"claimId": "clm_gone", "instanceId": instance, "items": []m{{"kind": "text", "text": "x"}}}
	case "POST extend":
		return path, m{"claimId": "clm_gone", "instanceId": instance, "addSeconds": 60}
	case "POST fail":
		return path, m{"claimId": "clm_gone", "instanceId": instance, "code": "X"}
	case "PATCH {worker}":
		return path, m{"name": "w3"}
	case "POST control-signal":
		return path, m{"signal": "pause"}
	case "POST ack-control-signal":
		return path, m{"signalId": "sig_0000000001", "instanceId": instance}
	case "POST claim", "POST heartbeat":
		return path, m{"instanceId": instance}
	case "POST messages", "POST review":
		return path, m{"text": "x"}
	case "POST approvals":
		return path, m{"instanceId": instance, "state": "", "approvals": []m{}}
	case "POST landings":
		return path, m{"verb": "merge"}
	case "POST {landing}":
		return path, m{"instanceId": instance, "state": "done"}
	case "POST changes":
		return path, m{
			"claimId": "clm_gone", "instanceId": instance, "snapshot": "x", "files": []m{}, "fileCount": 0, "added": 0, "removed": 0, "last": true,
			"state": m{"place": "worktree", "commits": []m{}, "commitCount": 0, "unpushed": 0, "dirty": false},
		}
	case "PATCH {thread}":
		return path, m{"state": "completed"}
	case "POST answer":
		return path, m{"promptId": "pmt_0000000001", "text": "x"}
	case "POST rotate", "POST test", "POST redeliver", "POST trigger-urls", "POST retry", "POST archive", "POST keep", "POST prune", "POST cancel", "POST stop", "POST pause", "POST resume", "POST skip", "POST unskip", "POST sessions", "PATCH {agent}", "POST signin-links", "POST send", "POST sign-out-everywhere":
		return path, m{}
	}
	return path, m{"claimId": "clm_gone", "instanceId": instance}
}

// taskBody is what an operation on tasks is sent.
func taskBody(op servertest.Operation, slug string) m {
	switch op.Path[strings.LastIndexByte(op.Path, '/')+1:] {
	case "tasks", "{task}":
		return m{"title": slug}
	case "extend":
		return m{"addSeconds": 60}
	case "comments":
		return m{"text": "x"}
	case "dispatch":
		return m{"agent": slug}
	}
	return m{}
}

// told is an answer in the table's letters.
func told(t *testing.T, a servertest.Response) string {
	switch a.Status {
	case http.StatusUnauthorized:
		if strings.Contains(string(a.Body), "invitation") {
			return "n"
		}
		return "1"
	case http.StatusForbidden:
		if a.Problem(t).Code == api.CodeUserTokenRequired {
			return "u"
		}
		return "3"
	case http.StatusNotFound:
		for _, missing := range []string{"such prompt", "No changes were recorded", "such request to land here", "such comment here", "such standing approval here", "such file"} {
			if strings.Contains(string(a.Body), missing) {
				return "+" // the session was found, and may be answered, or landed
			}
		}
		return "4"
	}
	if a.Status >= 500 {
		return fmt.Sprintf("%d", a.Status)
	}
	return "+"
}

func TestAccess_EveryRouteForEverybody(t *testing.T) {
	c := newCastle(t)
	names := strings.Fields(columns)
	for _, op := range servertest.Operations() {
		want, ok := row(op)
		if !ok {
			t.Errorf("%s %s has no row in the table of access", op.Method, op.Path)
			continue
		}
		letters := strings.Fields(want)
		if len(letters) != len(names) {
			t.Fatalf("%s %s: the row %q has not a column for each of %s", op.Method, op.Path, want, columns)
		}
		for i, name := range names {
			path, body := c.request(op, api.Cloud)
			a := c.who[name].Do(op.Method, path, body)
			if got := told(t, a); got != letters[i] {
				t.Errorf("%s %s as %s: got %s, want %s: %d %.200s", op.Method, op.Path, name, got, letters[i], a.Status, a.Body)
			}
		}
	}
}

// A local session and a local worker are visible to their owner alone: the same routes, with
// local things of the owner's.
func TestAccess_LocalThingsAreTheirOwnersAlone(t *testing.T) {
	c := newCastle(t)
	for _, op := range servertest.Operations() {
		if !isOfOne(op) {
			continue
		}
		for _, name := range []string{"viewer", "member", "admin", "foreigner"} {
			path, body := c.request(op, api.Local)
			a := c.who[name].Do(op.Method, path, body)
			// An admin sees a local worker's record and may signal it, nothing more (contract
			// 5.1, 5.3, 8.3).
			want := "4"
			switch record := strings.HasSuffix(op.Path, "/{worker}"); {
			case name != "admin":
			case record && op.Method != "GET":
				want = "3"
			case record || strings.HasSuffix(op.Path, "/control-signal"):
				want = "+"
			}
			if told(t, a) != want {
				t.Errorf("%s %s as %s: %d %.200s", op.Method, op.Path, name, a.Status, a.Body)
			}
		}
		path, body := c.request(op, api.Local)
		if a := c.Do(op.Method, path, body); told(t, a) != "+" {
			t.Errorf("%s %s as its owner: %d %.200s", op.Method, op.Path, a.Status, a.Body)
		}
	}
}

// isOfOne reports whether an operation is about one session, worker or thread. A late result
// needs a claim's id, whoever sends it.
func isOfOne(op servertest.Operation) bool {
	return strings.Contains(op.Path, "{session}") || strings.Contains(op.Path, "{worker}") ||
		strings.Contains(op.Path, "{thread}") && !strings.HasSuffix(op.Path, "/late-results")
}

// Nothing of them appears in other people's answers elsewhere: in no list, count, search,
// stream, inbox or log, neither their ids nor a word of their text.
func TestAccess_NothingOfALocalSessionGetsOut(t *testing.T) {
	c := newCastle(t)
	body := m{"title": "canary-title", "prompt": "canary-prompt"}
	claim := c.claim(servertest.Must[api.Session](c.Server, 201, "POST", "agents/tidy/sessions", body).ID)
	servertest.Must[api.Activity](c.Server, 201, "POST", c.at(claim.SessionID, "/activities"), with(proof(claim), m{"type": "progress", "text": "canary-activity"}))
	servertest.Must[api.ItemsAnswer](c.Server, 200, "POST", c.at(claim.SessionID, "/items"), with(proof(claim), m{"items": []m{{"kind": "text", "text": "canary-output"}}}))
	servertest.Must[api.Session](c.Server, 200, "PATCH", c.at(claim.SessionID, ""), with(proof(claim), m{"status": "awaiting_input", "prompt": m{"kind": "text", "text": "canary-question"}}))
	ended := c.running()
	servertest.Must[api.Finished](c.Server, 200, "POST", c.at(ended.SessionID, "/fail"), with(proof(ended), m{"code": "X", "message": "canary-error", "result": "canary-result"}))
	canaries := []string{"canary", claim.SessionID.String(), ended.SessionID.String(), claim.Session.ThreadID.String()}

	paths := []string{
		"sessions?q=canary", "sessions?q=canary-output", "sessions?status=awaiting_input", "sessions?status=error", "sessions/counts?agent=tidy", "sessions?agent=tidy",
		"agents/tidy/sessions?limit=200", "workers?limit=200", "agents/tidy/workers", "events?after=0&limit=200", "inbox", "audit?limit=200", "audit?session=" + claim.SessionID.String(),
		"agents/tidy/ledger", "members", "keys",
	}
	for _, op := range servertest.Operations() {
		if op.Method == "GET" && !isOfOne(op) {
			path, _ := c.request(op, api.Local)
			paths = append(paths, path)
		}
	}
	seen := map[string]bool{}
	for _, path := range paths {
		if a := c.Do("GET", path, nil); a.Status == 200 {
			for _, canary := range canaries {
				seen[path] = seen[path] || strings.Contains(string(a.Body), canary)
			}
		}
		for _, name := range []string{"viewer", "member", "admin", "foreigner"} {
			a := c.who[name].Do("GET", path, nil)
			for _, canary := range canaries {
				if strings.Contains(string(a.Body), canary) {
					t.Errorf("GET %s as %s mentions %s: %.300s", path, name, canary, a.Body)
				}
			}
		}
	}
	for _, path := range []string{"sessions?q=canary", "agents/tidy/sessions?limit=200", "events?after=0&limit=200", "inbox"} {
		if !seen[path] {
			t.Errorf("GET %s doesn't tell the owner either: the canaries prove nothing there", path)
		}
	}
	// A count is nothing but numbers: other people's are the same without the owner's
	// sessions.
	for _, name := range []string{"viewer", "member", "admin"} {
		if got := string(c.who[name].Do("GET", "sessions/counts", nil).Body); strings.Contains(got, `"awaiting_input":1`) || strings.Contains(got, `"error":1`) {
			t.Errorf("the counts as %s are %s", name, got)
		}
	}
}

func TestAccess_TableHasNoStaleRow(t *testing.T) {
	used := map[string]bool{}
	for _, op := range servertest.Operations() {
		if r, ok := row(op); ok {
			used[r] = true
		}
	}
	for what, r := range access {
		if !used[r] {
			t.Errorf("no operation needs the row %s", what)
		}
	}
	if !slices.Contains(strings.Fields(columns), "foreigner") {
		t.Error("nobody of another workspace asks")
	}
}
