package server

import (
	"slices"

	"stint/account"
	"stint/api"
)

// anyScope marks routes that every API key may use.
const anyScope api.Scope = "any"

// keyScopes is everything that API keys may do, by method and path, and the scope that it
// takes. Whatever isn't listed needs a user's own sign-in (contract 8.2).
var keyScopes = withSessionVerbs(map[string]api.Scope{
	"GET /api/v1/whoami":     anyScope,
	"GET /api/v1/workspaces": anyScope,
	"GET " + base:            anyScope,
	"GET /openapi.json":      anyScope,
	"GET /openapi.yaml":      anyScope,
	"POST " + mcpRoute:       anyScope,

	"GET " + base + "/agents":            api.ScopeRead,
	"GET " + oneAgent:                    api.ScopeRead,
	"GET " + oneAgent + "/ledger":        api.ScopeRead,
	"GET " + oneAgent + "/sessions":      api.ScopeRead,
	"GET " + base + "/sessions":          api.ScopeRead,
	"GET " + base + "/sessions/counts":   api.ScopeRead,
	"GET " + base + "/inbox":             api.ScopeRead,
	"GET " + base + "/schedules":         api.ScopeRead,
	"GET " + base + "/schedules/preview": api.ScopeRead,
	"GET " + base + "/events":            api.ScopeRead,
	"GET " + calendarRoute:               api.ScopeCalendar,
	"GET " + base + "/threads/{thread}":  api.ScopeRead,

	"GET " + oneSession + "/changes":            api.ScopeRead,
	"GET " + oneSession + "/landings/{landing}": api.ScopeRead,

	"POST " + oneAgent + "/sessions": api.ScopeTrigger,

	"GET " + base + "/tasks":        api.ScopeRead,
	"GET " + base + "/tasks/next":   api.ScopeRead,
	"GET " + base + "/tasks/counts": api.ScopeRead,
	"GET " + oneTask:                api.ScopeRead,
	"GET " + oneTask + "/briefing":  api.ScopeRead,
	"GET " + oneTask + "/comments":  api.ScopeRead,
	"GET " + oneTask + "/events":    api.ScopeRead,
	"GET " + oneTask + "/sessions":  api.ScopeRead,
	"POST " + base + "/tasks":       api.ScopeTasks,
	"PATCH " + oneTask:              api.ScopeTasks,
	"POST " + oneTask + "/claim":    api.ScopeTasks,
	"POST " + oneTask + "/renew":    api.ScopeTasks,
	"POST " + oneTask + "/extend":   api.ScopeTasks,
	"POST " + oneTask + "/release":  api.ScopeTasks,
	"POST " + oneTask + "/comments": api.ScopeTasks,
	"POST " + oneTask + "/dispatch": api.ScopeTasks, // and the scope to run its agent

	"GET " + classicBase:                        api.ScopeRead,
	"POST " + classicBase:                       api.ScopeTrigger,
	"POST " + classicBase + "/{session}/cancel": api.ScopeCancel,
}, map[string]api.Scope{
	"GET ":            api.ScopeRead,
	"GET /items":      api.ScopeRead,
	"GET /output":     api.ScopeRead,
	"GET /activities": api.ScopeRead,
	"GET /events":     api.ScopeRead,
	"GET /messages":   api.ScopeRead,
	"POST /retry":     api.ScopeTrigger,
	"POST /cancel":    api.ScopeCancel,
	"POST /stop":      api.ScopeCancel,

	"GET /attachments":              api.ScopeRead,
	"GET /attachments/{attachment}": api.ScopeRead,
})

// withSessionVerbs adds what keys may do with a session under both of its paths.
func withSessionVerbs(all, verbs map[string]api.Scope) map[string]api.Scope {
	for verb, scope := range verbs {
		for _, under := range []string{oneSession, sessionOfAgent} {
			for i := range verb {
				if verb[i] == ' ' {
					all[verb[:i+1]+under+verb[i+1:]] = scope
				}
			}
		}
	}
	return all
}

// runRoutes is everything that a run's token may do (contract 8.4). Whatever isn't listed
// needs a user's own sign-in; the engine checks whose session and worker it is.
var runRoutes = withSessionVerbs(map[string]api.Scope{
	"GET /api/v1/whoami":     anyScope,
	"GET /api/v1/workspaces": anyScope,
	"GET " + base:            anyScope,
	"GET /openapi.json":      anyScope,
	"GET /openapi.yaml":      anyScope,
	"POST " + mcpRoute:       anyScope, // its tools come back here, one by one

	"POST " + oneAgent + "/sessions": anyScope,

	"GET " + base + "/tasks":        anyScope,
	"GET " + oneTask:                anyScope,
	"GET " + oneTask + "/briefing":  anyScope,
	"GET " + oneTask + "/comments":  anyScope,
	"GET " + oneTask + "/events":    anyScope,
	"POST " + oneTask + "/comments": anyScope,
	"POST " + oneTask + "/renew":    anyScope,
	"POST " + oneTask + "/extend":   anyScope,

	"POST " + claimed + "/renew":      anyScope,
	"POST " + claimed + "/extend":     anyScope,
	"POST " + claimed + "/activities": anyScope,
	"POST " + claimed + "/items":      anyScope,
	"PATCH " + claimed:                anyScope,
}, map[string]api.Scope{
	"GET ":            anyScope,
	"GET /items":      anyScope,
	"GET /output":     anyScope,
	"GET /activities": anyScope,
	"GET /events":     anyScope,
})

// keyMay refuses an API key or a run's token on a route that isn't open to it.
func (x *exchange) keyMay(method string) error {
	if x.grant == nil || x.grant.who.Person() {
		return nil
	}
	if x.grant.who.Run != nil {
		if _, ok := runRoutes[method+" "+x.route]; !ok {
			return account.UserTokenRequired("")
		}
		return nil
	}
	scope, ok := keyScopes[method+" "+x.route]
	if !ok {
		return account.UserTokenRequired("")
	}
	if scope != anyScope && !slices.Contains(x.grant.who.Scopes, scope) {
		return account.UserTokenRequired(scope)
	}
	return nil
}
