package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/gorilla/mux"
)

// verb answers one request. It returns the answer; refusals are errors.
type verb func(s *Server, x *exchange) (response, error)

// route is a row of the table below. api/openapi.yaml describes the same paths.
type route struct {
	method, path string
	verb         verb
}

const (
	get   = http.MethodGet
	post  = http.MethodPost
	patch = http.MethodPatch
	del   = http.MethodDelete

	base           = "/api/v1/workspaces/{workspace}"
	oneAgent       = base + "/agents/{agent}"
	oneWorker      = oneAgent + "/workers/{worker}"
	claimed        = oneWorker + "/sessions/{session}"
	oneSession     = base + "/sessions/{session}"
	sessionOfAgent = oneAgent + "/sessions/{session}"
	oneWebhook     = base + "/webhooks/{webhook}"
	oneChannel     = base + "/channels/{channel}"
	classicBase    = "/api/workspaces/{workspace}/agents/{agent}/sessions"
)

// routes is every path that needs a caller. The busiest come first, because they are tried in
// order.
var routes = []route{
	{post, base + "/claim-next", (*Server).claimNext},
	{post, oneAgent + "/sessions", (*Server).createSession},
	{post, claimed + "/complete", (*Server).complete},
	{post, claimed + "/activities", (*Server).addActivity},
	{post, claimed + "/items", (*Server).addItems},
	{post, claimed + "/renew", (*Server).renew},
	{post, oneWorker + "/heartbeat", (*Server).beat},
	{get, oneWorker + "/sessions", (*Server).poll},
	{get, base + "/events", (*Server).events},

	{post, claimed + "/claim", (*Server).claim},
	{post, claimed + "/extend", (*Server).extend},
	{post, claimed + "/changes", (*Server).reportChanges},
	{post, claimed + "/release", (*Server).release},
	{post, claimed + "/fail", (*Server).failSession},
	{patch, claimed, (*Server).patchSession},
	{post, base + "/threads/{thread}/late-results", (*Server).keepLateResult},
	{get, base + "/threads/{thread}", (*Server).showThread},
	{patch, base + "/threads/{thread}", (*Server).patchThread},

	{get, oneAgent + "/sessions", (*Server).agentSessions},
	{get, base + "/sessions", (*Server).listSessions},
	{get, base + "/sessions/counts", (*Server).countSessions},

	{get, base + "/agents", (*Server).listAgents},
	{post, base + "/agents", (*Server).createAgent},
	{get, oneAgent, (*Server).showAgent},
	{patch, oneAgent, (*Server).editAgent},
	{del, oneAgent, (*Server).deleteAgent},
	{post, oneAgent + "/pause", (*Server).pauseAgent},
	{post, oneAgent + "/resume", (*Server).resumeAgent},
	{post, oneAgent + "/skip", (*Server).skipSlots},
	{post, oneAgent + "/unskip", (*Server).keepSlots},
	{get, oneAgent + "/ledger", (*Server).ledger},
	{get, base + "/schedules", (*Server).listSchedules},
	{get, base + "/schedules/preview", (*Server).preview},
	{get, calendarRoute, (*Server).calendar},

	{get, base + "/workers", (*Server).listWorkers},
	{get, oneAgent + "/workers", (*Server).agentWorkers},
	{post, oneAgent + "/workers", (*Server).registerWorker},
	{get, oneWorker, (*Server).showWorker},
	{patch, oneWorker, (*Server).editWorker},
	{del, oneWorker, (*Server).deleteWorker},
	{post, oneWorker + "/control-signal", (*Server).signalWorker},
	{post, oneWorker + "/ack-control-signal", (*Server).acknowledgeSignal},
	{post, oneWorker + "/landings/{landing}", (*Server).answerLanding},
	{get, oneWorker + "/approvals", (*Server).listApprovals},
	{post, oneWorker + "/approvals", (*Server).reportApprovals},
	{del, oneWorker + "/approvals/{approval}", (*Server).removeApproval},

	{get, classicBase, (*Server).classicSessions},
	{post, classicBase, (*Server).classicTrigger},
	{post, classicBase + "/{session}/cancel", (*Server).classicCancel},
	{get, base + "/members", (*Server).listMembers},
	{patch, base + "/members/{user}", (*Server).setRole},
	{del, base + "/members/{user}", (*Server).removeMember},
	{get, base + "/invitations", (*Server).listInvitations},
	{post, base + "/invitations", (*Server).invite},
	{del, base + "/invitations/{invitation}", (*Server).revokeInvitation},
	{get, base + "/keys", (*Server).listKeys},
	{post, base + "/keys", (*Server).createKey},
	{del, base + "/keys/{key}", (*Server).revokeKey},

	{get, oneSession + "/changes", (*Server).showChanges},
	{post, oneSession + "/landings", (*Server).requestLanding},
	{get, oneSession + "/landings/{landing}", (*Server).showLanding},
	{del, oneSession + "/landings/{landing}", (*Server).withdrawLanding},
	{get, oneSession + "/review", (*Server).listReview},
	{post, oneSession + "/review", (*Server).commentOnChanges},
	{post, oneSession + "/review/send", (*Server).sendReview},
	{del, oneSession + "/review/{comment}", (*Server).dropComment},

	{get, base + "/audit", (*Server).audit},
	{get, base + "/inbox", (*Server).inbox},
	{get, base + "/status", (*Server).overview},
	{get, base + "/system", (*Server).system},
	{post, base + "/system/prune", (*Server).prune},
	{get, base + "/system/bundle", (*Server).supportBundle},
	{get, base + "/doctor", (*Server).examine},

	{get, base + "/channels", (*Server).listChannels},
	{post, base + "/channels", (*Server).createChannel},
	{get, oneChannel, (*Server).showChannel},
	{patch, oneChannel, (*Server).editChannel},
	{del, oneChannel, (*Server).deleteChannel},
	{post, oneChannel + "/test", (*Server).testChannel},
	{get, oneChannel + "/deliveries", (*Server).listChannelDeliveries},
	{get, oneChannel + "/deliveries/{delivery}", (*Server).showChannelDelivery},
	{get, base + "/webhooks", (*Server).listWebhooks},
	{post, base + "/webhooks", (*Server).createWebhook},
	{get, oneWebhook, (*Server).showWebhook},
	{patch, oneWebhook, (*Server).editWebhook},
	{del, oneWebhook, (*Server).deleteWebhook},
	{post, oneWebhook + "/rotate", (*Server).rotateWebhook},
	{post, oneWebhook + "/test", (*Server).testWebhook},
	{get, oneWebhook + "/deliveries", (*Server).listDeliveries},
	{post, oneWebhook + "/deliveries/{delivery}/redeliver", (*Server).redeliver},
	{get, oneAgent + "/trigger-urls", (*Server).listTriggerURLs},
	{post, oneAgent + "/trigger-urls", (*Server).openTriggerURL},
	{del, oneAgent + "/trigger-urls/{trigger}", (*Server).closeTriggerURL},

	{get, base, (*Server).showWorkspace},
	{patch, base, (*Server).renameWorkspace},
	{get, "/api/v1/workspaces", (*Server).listWorkspaces},
	{post, "/api/v1/workspaces", (*Server).createWorkspace},
	{get, "/api/v1/whoami", (*Server).whoami},
	{get, "/api/v1/account", (*Server).showAccount},
	{post, "/api/v1/account/login", (*Server).setLogin},
	{post, "/api/v1/account/invitation", (*Server).acceptInvitation},
	{get, "/api/v1/account/sign-ins", (*Server).listSignIns},
	{del, "/api/v1/account/sign-ins/{signin}", (*Server).endSignIn},
	{post, "/api/v1/account/sign-out-everywhere", (*Server).signOutEverywhere},
	{del, "/api/v1/account/identities/{identity}", (*Server).unlink},
	{get, "/api/v1/programs", (*Server).listRegistrations},
	{del, "/api/v1/programs/{program}", (*Server).revokeRegistration},
	{post, "/api/v1/signin-links", (*Server).newSignInLink},
	{get, "/openapi.yaml", (*Server).openAPI},
	{get, "/openapi.json", (*Server).openAPI},
	{post, "/signout", (*Server).signOut},
	{get, authorizeRoute, (*Server).consentPage},
	{post, authorizeRoute, (*Server).consent},
	{get, verifyRoute, (*Server).devicePage},
	{post, verifyRoute, (*Server).verifyDevice},
	{get, linkRoute, (*Server).linkPage},
	{post, linkRoute, (*Server).leaveToLink},
}

// sessionVerbs are served below a session's path and below its path by agent.
var sessionVerbs = []route{
	{get, "", (*Server).showSession},
	{get, "/items", (*Server).items},
	{get, "/output", (*Server).output},
	{get, "/activities", (*Server).activities},
	{get, "/events", (*Server).sessionEvents},
	{post, "/cancel", (*Server).cancelSession},
	{post, "/stop", (*Server).stopSession},
	{post, "/retry", (*Server).retrySession},
	{post, "/archive", (*Server).archiveSession},
	{post, "/keep", (*Server).keepSession},
	{del, "/keep", (*Server).letGoSession},
	{post, "/answer", (*Server).answerPrompt},
	{get, "/prompts/{prompt}", (*Server).showPrompt},
	{post, "/messages", (*Server).postMessage},
	{get, "/messages", (*Server).messages},
	{get, "/attachments", (*Server).attachments},
	{get, "/attachments/{attachment}", (*Server).attachment},
}

// openRoutes answer without sign-in.
var openRoutes = []route{
	{get, "/healthz", (*Server).healthy},
	{get, "/readyz", (*Server).ready},
	{get, metricsRoute, (*Server).showMetrics},
	{get, signInRoute, (*Server).signInPage},
	{post, signInRoute, (*Server).signIn},
	{get, leaveRoute, (*Server).leave},
	{get, returnRoute, (*Server).comeBack},
	{get, signInStyle, (*Server).signInStyles},
	{get, signInFont, (*Server).signInTypeface},
	{get, signInScript, (*Server).signInJS},
	{get, setUpRoute, (*Server).setUpPage},
	{post, setUpRoute, (*Server).setUp},
	{get, invitationRoute, (*Server).invitationPage},
	{post, invitationRoute, (*Server).joinByInvitation},
	{get, authServerRoute, (*Server).authServer},
	{get, resourceRoute, (*Server).protectedResource},
	{get, resourceRoute + mcpRoute, (*Server).protectedResource},
	{post, tokenRoute, (*Server).token},
	{post, revokeRoute, (*Server).revoke},
	{post, deviceRoute, (*Server).startDevice},
	{post, registerRoute, (*Server).register},
}

// hookRoutes answer any caller that knows the address and can sign.
var hookRoutes = []route{{post, triggerPath + "{address}", (*Server).trigger}}

// allRoutes is the table with the session verbs under both of their paths.
func allRoutes() []route {
	all := slices.Concat(routes, taskRoutes)
	for _, under := range []string{oneSession, sessionOfAgent} {
		for _, r := range sessionVerbs {
			all = append(all, route{r.method, under + r.path, r.verb})
		}
	}
	return all
}

// resource is a path and what its methods do.
type resource struct {
	verbs map[string]verb
	allow []string // the Allow header
}

func newResources(table []route) map[string]*resource {
	all := map[string]*resource{}
	for _, r := range table {
		p := all[r.path]
		if p == nil {
			p = &resource{verbs: map[string]verb{}}
			all[r.path] = p
		}
		p.verbs[r.method] = r.verb
	}
	for _, p := range all {
		methods := []string{http.MethodOptions}
		for m := range p.verbs {
			methods = append(methods, m)
			if m == http.MethodGet {
				methods = append(methods, http.MethodHead)
			}
		}
		slices.Sort(methods)
		p.allow = []string{strings.Join(methods, ", ")}
	}
	return all
}

// newRouter makes the router, one route a path: the resource decides which methods a path has,
// because mux answers a wrong method with 404 or without an Allow header. The server only asks
// it to match, which avoids the request copies that mux makes to hand out variables.
func newRouter(table []route) (*mux.Router, map[string]*resource) {
	all := newResources(table)
	router := mux.NewRouter()
	seen := map[string]bool{}
	for _, r := range table {
		if !seen[r.path] {
			seen[r.path] = true
			router.NewRoute().MatcherFunc(shape(r.path)).Path(r.path).Name(r.path)
		}
	}
	return router, all
}

// shape distinguishes most paths by the number and the end of their segments, before mux runs
// the route's regular expression.
func shape(template string) mux.MatcherFunc {
	depth := strings.Count(template, "/")
	end := template[strings.LastIndexByte(template, '/'):]
	if strings.HasSuffix(end, "}") {
		end = ""
	}
	return func(r *http.Request, _ *mux.RouteMatch) bool {
		return strings.HasSuffix(r.URL.Path, end) && strings.Count(r.URL.Path, "/") == depth
	}
}
