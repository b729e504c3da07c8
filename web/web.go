package web

import (
	"bytes"
	"compress/gzip"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/gorilla/mux"

	"stint/account"
	"stint/api"
	"stint/engine"
)

// Options says what the dashboard is drawn from.
type Options struct {
	Engine   *engine.Engine
	Accounts *account.Accounts

	// CallerOf says who makes a request that has passed the server's checks. It is called
	// again before each batch of a stream; false ends that (contract 9.3).
	CallerOf func(*http.Request) (engine.Caller, account.Identity, bool)

	// FromOf says where a request comes from, HomeOf by which URL people reach this server;
	// nil = from nowhere, and the request's own host.
	FromOf func(*http.Request) account.From
	HomeOf func(*http.Request) string

	Provider Provider // through which people may sign in too

	// Folders is where new agents may each get a folder to work in, on the machine that runs
	// them; "" = they run elsewhere.
	Folders string

	Zone *time.Location // of readers whose browser hasn't sent theirs; nil = UTC
	Log  *slog.Logger   // nil = slog.Default()
}

// Provider is an external provider as the account page speaks of it.
type Provider struct{ Name, Issuer string } // empty = there is none

// dashboard serves the pages. Its fields don't change after New.
type dashboard struct {
	engine   *engine.Engine
	accounts *account.Accounts
	callerOf func(*http.Request) (engine.Caller, account.Identity, bool)
	fromOf   func(*http.Request) account.From
	homeOf   func(*http.Request) string
	provider Provider
	folders  string
	zone     *time.Location
	log      *slog.Logger
	pace     time.Duration // the least time between two looks of a stream
	beat     time.Duration // between signs of life on a silent stream
}

// New makes the dashboard's handler. It is to be mounted at the root, or below it through
// [WithBase], behind checks of host, origin and sign-in: the handler itself turns away only
// those whom CallerOf doesn't know.
func New(o Options) http.Handler {
	d := &dashboard{
		engine: o.Engine, accounts: o.Accounts, callerOf: o.CallerOf, fromOf: o.FromOf, homeOf: o.HomeOf, provider: o.Provider, folders: o.Folders, zone: o.Zone, log: o.Log,
		pace: 150 * time.Millisecond, beat: 15 * time.Second,
	}
	if d.zone == nil {
		d.zone = time.UTC
	}
	if d.fromOf == nil {
		d.fromOf = nobodysFrom
	}
	if d.homeOf == nil {
		d.homeOf = plainHome
	}
	if d.log == nil {
		d.log = slog.Default()
	}
	r := mux.NewRouter()
	r.PathPrefix(StaticPrefix).Handler(Static()).Methods(http.MethodGet, http.MethodHead)
	for _, p := range routes {
		methods := []string{p.method}
		if p.method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
		r.Handle(p.path, d.serve(p.do)).Methods(methods...)
	}
	r.NotFoundHandler = d.serve(func(*visit) error {
		return api.Refuse(api.CodeNotFound, "There is no page at this address.")
	})
	r.MethodNotAllowedHandler = d.serve(func(*visit) error {
		return api.Refuse(api.CodeMethodNotAllowed, "This address can't be used that way.")
	})
	return r
}

type route struct {
	method, path string
	do           func(*visit) error
}

// routes is the table of pages and of what their forms post to.
var routes = []route{
	{http.MethodGet, "/", (*visit).home},
	{http.MethodGet, "/inbox", (*visit).inbox},
	{http.MethodGet, "/sessions", (*visit).sessions},
	{http.MethodGet, "/sessions/{session}", (*visit).session},
	{http.MethodGet, "/sessions/{session}/output.txt", (*visit).output},
	{http.MethodGet, "/sessions/{session}/{verb:cancel|stop}", (*visit).askSession},
	{http.MethodPost, "/sessions/{session}/{verb:cancel|stop|retry|archive|keep|release}", (*visit).actSession},
	{http.MethodPost, "/sessions/{session}/answer", (*visit).answer},
	{http.MethodPost, "/sessions/{session}/say", (*visit).say},
	{http.MethodPost, "/sessions/{session}/review", (*visit).comment},
	{http.MethodPost, "/sessions/{session}/review/send", (*visit).sendReview},
	{http.MethodPost, "/sessions/{session}/review/{comment}/drop", (*visit).dropComment},
	{http.MethodPost, "/sessions/{session}/land", (*visit).land},
	{http.MethodPost, "/sessions/{session}/landings/{landing}/withdraw", (*visit).withdrawLanding},
	{http.MethodGet, "/sessions/{session}/files/{file}", (*visit).file},
	{http.MethodGet, "/run", (*visit).chooseAgent},
	{http.MethodPost, "/run", (*visit).quickRun},
	{http.MethodGet, systemPath, (*visit).system},
	{http.MethodGet, bundlePath, (*visit).bundle},
	{http.MethodGet, "/agents", (*visit).agents},
	{http.MethodGet, "/agents/new", (*visit).newAgent},
	{http.MethodPost, "/agents", (*visit).createAgent},
	{http.MethodGet, "/agents/{agent}", (*visit).agent},
	{http.MethodGet, "/agents/{agent}/edit", (*visit).editAgent},
	{http.MethodPost, "/agents/{agent}/edit", (*visit).saveAgent},
	{http.MethodGet, "/agents/{agent}/run", (*visit).runForm},
	{http.MethodPost, "/agents/{agent}/run", (*visit).run},
	{http.MethodGet, "/agents/{agent}/delete", (*visit).askDelete},
	{http.MethodPost, "/agents/{agent}/{verb:pause|resume|skip|unskip|delete}", (*visit).actAgent},
	{http.MethodGet, "/agents/{agent}/triggers/{trigger}/close", (*visit).askTrigger},
	{http.MethodPost, "/agents/{agent}/triggers/{trigger}/close", (*visit).closeTrigger},
	{http.MethodGet, "/tasks", (*visit).tasks},
	{http.MethodPost, "/tasks", (*visit).createTask},
	{http.MethodGet, "/tasks/new", (*visit).newTask},
	{http.MethodGet, "/tasks/export", (*visit).askExport},
	{http.MethodGet, "/tasks/export.{format:json|csv}", (*visit).exportTasks},
	{http.MethodGet, "/tasks/{task}", (*visit).task},
	{http.MethodGet, "/tasks/{task}/edit", (*visit).editTask},
	{http.MethodPost, "/tasks/{task}/edit", (*visit).saveTask},
	{http.MethodPost, "/tasks/{task}/state", (*visit).moveTask},
	{http.MethodPost, "/tasks/{task}/comments", (*visit).commentTask},
	{http.MethodGet, "/tasks/{task}/dispatch", (*visit).dispatchForm},
	{http.MethodPost, "/tasks/{task}/dispatch", (*visit).dispatchTask},
	{http.MethodPost, "/tasks/{task}/{verb:claim|renew|extend|release}", (*visit).actTask},
	{http.MethodGet, "/search", (*visit).search},
	{http.MethodGet, "/ui/palette", (*visit).palette},
	{http.MethodGet, "/schedules", (*visit).schedules},
	{http.MethodGet, "/insights", (*visit).insights},
	{http.MethodGet, "/insights.csv", (*visit).exportInsights},
	{http.MethodGet, "/workers", (*visit).workers},
	{http.MethodGet, "/settings/notifications", (*visit).channels},
	{http.MethodPost, "/settings/notifications", (*visit).createChannel},
	{http.MethodGet, "/settings/notifications/{channel}", (*visit).channel},
	{http.MethodPost, "/settings/notifications/{channel}", (*visit).saveChannel},
	{http.MethodGet, "/settings/notifications/{channel}/delete", (*visit).askDeleteChannel},
	{http.MethodPost, "/settings/notifications/{channel}/{verb:test|enable|disable|delete}", (*visit).actChannel},
	{http.MethodGet, "/settings/webhooks", (*visit).webhooks},
	{http.MethodPost, "/settings/webhooks", (*visit).createWebhook},
	{http.MethodGet, "/settings/webhooks/{webhook}", (*visit).webhook},
	{http.MethodGet, "/settings/webhooks/{webhook}/delete", (*visit).askDeleteWebhook},
	{http.MethodPost, "/settings/webhooks/{webhook}/{verb:test|rotate|enable|disable|delete}", (*visit).actWebhook},
	{http.MethodPost, "/settings/webhooks/{webhook}/deliveries/{delivery}/redeliver", (*visit).redeliver},
	{http.MethodGet, "/activity", (*visit).activity},
	{http.MethodGet, "/activity/export.ndjson", (*visit).exportActivity},
	{http.MethodGet, "/help", (*visit).help},
	{http.MethodGet, "/help/{page:[a-z-]+}.txt", (*visit).helpSource},
	{http.MethodGet, "/help/{page}", (*visit).helpOn},
	{http.MethodGet, "/api/docs", (*visit).apiDocs},
	{http.MethodGet, "/api/docs/{name}", (*visit).apiDocsOn},
	{http.MethodGet, "/llms.txt", (*visit).llms},
	{http.MethodGet, "/workers/{worker}", (*visit).worker},
	{http.MethodGet, "/workers/{worker}/edit", (*visit).editWorker},
	{http.MethodPost, "/workers/{worker}/edit", (*visit).saveWorker},
	{http.MethodPost, "/workers/{worker}/approvals/{approval}/remove", (*visit).removeApproval},
	{http.MethodGet, "/workers/{worker}/{verb:restart|stop|forget}", (*visit).askWorker},
	{http.MethodPost, "/workers/{worker}/{verb:pause|resume|restart|stop|forget}", (*visit).actWorker},
	{http.MethodGet, "/settings", (*visit).settings},
	{http.MethodGet, "/settings/members", (*visit).members},
	{http.MethodPost, "/settings/members/invite", (*visit).invite},
	{http.MethodPost, "/settings/members/{user}/role", (*visit).setRole},
	{http.MethodGet, "/settings/members/{user}/remove", (*visit).askRemove},
	{http.MethodPost, "/settings/members/{user}/remove", (*visit).removeMember},
	{http.MethodPost, "/settings/invitations/{invitation}/revoke", (*visit).revokeInvitation},
	{http.MethodGet, "/settings/keys", (*visit).keys},
	{http.MethodPost, "/settings/keys", (*visit).createKey},
	{http.MethodPost, "/settings/keys/{key}/revoke", (*visit).revokeKey},
	{http.MethodGet, "/settings/programs", (*visit).programs},
	{http.MethodPost, "/settings/programs/{program}/revoke", (*visit).revokeProgram},
	{http.MethodGet, "/settings/account", (*visit).account},
	{http.MethodPost, "/settings/account/login", (*visit).setLogin},
	{http.MethodPost, "/settings/account/sign-ins/{signin}/end", (*visit).endSignIn},
	{http.MethodPost, "/settings/account/identities/{identity}/unlink", (*visit).unlink},
	{http.MethodPost, "/settings/account/sign-out-everywhere", (*visit).signOutEverywhere},
	{http.MethodPost, "/settings/workspace", (*visit).chooseWorkspace},
	{http.MethodGet, "/ui/stream", (*visit).stream},
	{http.MethodGet, "/ui/schedule", (*visit).schedule},
	{http.MethodPost, "/ui/preferences", (*visit).preferences},
}

// visit is one request for a page and its answer. The request's goroutine owns it.
type visit struct {
	http.ResponseWriter
	r      *http.Request
	web    *dashboard
	caller engine.Caller
	who    account.Identity
	prefs  prefs
}

// maxForm bounds what a form may send (contract 9.2).
const maxForm = 1 << 20

func (d *dashboard) serve(do func(*visit) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", PagePolicy)
		w.Header().Set("Cache-Control", "no-store")
		v := &visit{ResponseWriter: w, r: r, web: d, prefs: prefsOf(r, d.zone)}
		caller, who, ok := d.callerOf(r)
		if !ok {
			v.fail(api.Refuse(api.CodeUnauthenticated, "Sign in first, at "+Address(r.Context(), "/signin")+" or with “stint open” in a terminal."))
			return
		}
		v.caller, v.who = caller, who
		if r.Method == http.MethodPost {
			most, read := int64(maxForm), readForm
			if takesFiles(r.URL.Path) && strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data;") {
				most, read = maxFilled, readFilled
			}
			r.Body = http.MaxBytesReader(w, r.Body, most)
			if err := read(r); err != nil {
				v.fail(err)
				return
			}
		}
		if err := do(v); err != nil {
			v.fail(err)
		}
	})
}

func readForm(r *http.Request) error {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if kind != "application/x-www-form-urlencoded" {
		return api.Refuse(api.CodeUnsupportedType, "Forms are sent as application/x-www-form-urlencoded.")
	}
	err := r.ParseForm()
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return api.Refuse(api.CodeTooLarge, "The form is larger than 1 MiB.")
	case err != nil:
		return api.Refuse(api.CodeMalformed, "The form can't be read.")
	}
	return nil
}

// page draws a whole page around content. Seq is the newest event that is already in it, from
// which its stream continues.
func (v *visit) page(status int, s Shell, content templ.Component) error {
	needs, err := v.web.engine.NeedsYou(v.r.Context(), v.caller)
	if err != nil {
		return err
	}
	s.NeedsYou, s.Audits = needs, v.caller.CanAudit()
	s.Theme, s.Density, s.Keys = v.prefs.theme, v.prefs.density, v.prefs.keys
	s.Done = v.takeDone()
	if s.Now.IsZero() {
		s.Now = v.web.engine.Now()
	}
	return v.draw(status, Layout(s), content)
}

// draw buffers, so that a page that fails half-way becomes an error page and never half a
// page.
func (v *visit) draw(status int, layout, content templ.Component) error {
	var buf bytes.Buffer
	ctx := v.r.Context()
	if content != nil {
		ctx = templ.WithChildren(ctx, content)
	}
	if err := layout.Render(ctx, &buf); err != nil {
		return err
	}
	v.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.Header().Add("Vary", "Accept-Encoding, Sec-Fetch-Site")
	body := buf.Bytes()
	if mayPack(v.r) {
		if small := packed(body, gzip.BestSpeed); small != nil {
			v.Header().Set("Content-Encoding", "gzip")
			body = small
		}
	}
	v.Header().Set("Content-Length", strconv.Itoa(len(body)))
	v.WriteHeader(status)
	if _, err := v.Write(body); err != nil {
		v.web.log.Debug("a reader went away", "path", v.r.URL.Path, "error", err)
	}
	return nil
}

// to redirects the browser after a form was accepted, with what was done.
func (v *visit) to(path, done string) error {
	if done != "" {
		http.SetCookie(v, &http.Cookie{Name: doneCookie, Value: url.QueryEscape(done), Path: "/", MaxAge: 60, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	}
	http.Redirect(v, v.r, Address(v.r.Context(), path), http.StatusSeeOther)
	return nil
}

const doneCookie = "stint_done"

func (v *visit) takeDone() string {
	c, err := v.r.Cookie(doneCookie)
	if err != nil {
		return ""
	}
	http.SetCookie(v, &http.Cookie{Name: doneCookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	text, err := url.QueryUnescape(c.Value)
	if err != nil || len(text) > 200 {
		return ""
	}
	return text
}

// path is a name in the address, such as the agent's.
func (v *visit) path(name string) string { return mux.Vars(v.r)[name] }

func (v *visit) workerID() (api.WorkerID, error) {
	id, err := api.ParseWorkerID(v.path("worker"))
	if err != nil || id == 0 {
		return 0, api.Refuse(api.CodeNotFound, "There is no such worker here.")
	}
	return id, nil
}

func (v *visit) sessionID() (api.SessionID, error) {
	id, err := api.ParseSessionID(v.path("session"))
	if err != nil || id == 0 {
		return 0, api.Refuse(api.CodeNotFound, "There is no such session here.")
	}
	return id, nil
}
