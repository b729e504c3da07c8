package web

import (
	"net/http"
	"strings"
	"time"

	"stint/account"
	"stint/api"
)

// WorkspaceCookie holds the slug of the workspace that a browser's pages show.
const WorkspaceCookie = "stint_workspace"

// settingsTabs are the pages of the settings, the current one marked.
func (v *visit) settingsTabs(current string) []Tab {
	tabs := []Tab{{Label: "Members", URL: "/settings/members"}}
	if v.caller.CanHaveKeys() {
		tabs = append(tabs, Tab{Label: "API keys", URL: "/settings/keys"})
	}
	if v.caller.CanHaveChannels() {
		tabs = append(tabs, Tab{Label: "Notifications", URL: notificationsPath})
	}
	if v.caller.CanManageWebhooks() {
		tabs = append(tabs, Tab{Label: "Webhooks", URL: "/settings/webhooks"})
	}
	if v.caller.CanManageMembers() {
		tabs = append(tabs, Tab{Label: "Programs", URL: "/settings/programs"})
	}
	if v.caller.CanAudit() {
		tabs = append(tabs, Tab{Label: "System", URL: systemPath})
	}
	tabs = append(tabs, Tab{Label: "Account", URL: "/settings/account"})
	for i := range tabs {
		tabs[i].Current = tabs[i].Label == current
	}
	return tabs
}

func (v *visit) settings() error { return v.to("/settings/account", "") }

// settingsList is the most that a page of settings lists.
var settingsList = api.Page{Limit: 200}

// membersPage is what settings.templ draws of the members.
type membersPage struct {
	tabs        []Tab
	members     []api.WorkspaceMember
	invitations []api.Invitation
	invited     *api.Invitation // just created: with its link, this once
	manages     bool
	me          api.UserID
	now         time.Time
	note        Input
	role        Input
}

var roleOptions = []Option{
	{string(api.Viewer), "Viewer: reads"},
	{string(api.Member), "Member: runs local agents"},
	{string(api.Admin), "Admin: makes agents, runs all"},
	{string(api.Owner), "Owner: everything, members too"},
}

func (v *visit) members() error { return v.drawMembers(http.StatusOK, nil, nil) }

func (v *visit) drawMembers(status int, invited *api.Invitation, bad map[string]string) error {
	ctx, eng := v.r.Context(), v.web.engine
	p := membersPage{
		tabs: v.settingsTabs("Members"), manages: v.caller.CanManageMembers(), me: v.caller.UserID, now: eng.Now(), invited: invited,
		note: Input{ID: "note", Label: "For whom", Hint: "Only owners see it.", Error: sentence(bad["note"])},
		role: Input{ID: "role", Label: "Role", Value: string(api.Member), Error: sentence(bad["role"])},
	}
	list, err := eng.Members(ctx, v.caller, settingsList)
	if err != nil {
		return err
	}
	p.members = list.Items
	if p.manages {
		open, err := v.web.accounts.Invitations(ctx, v.caller, settingsList)
		if err != nil {
			return err
		}
		p.invitations = open.Items
	}
	return v.page(status, Shell{Title: "Members", Place: "settings", Now: p.now}, members(p))
}

func (v *visit) invite() error {
	form := v.r.PostForm
	i, err := v.web.accounts.Invite(v.r.Context(), v.caller, api.InvitationInput{Role: api.Role(form.Get("role")), Note: form.Get("note")})
	if bad, ok := fieldErrors(err); ok {
		return v.drawMembers(http.StatusUnprocessableEntity, nil, bad)
	}
	if err != nil {
		return err
	}
	i.Link = v.web.homeOf(v.r) + "/invitation#" + i.Code
	return v.drawMembers(http.StatusOK, &i, nil)
}

func (v *visit) revokeInvitation() error {
	var id api.InviteID
	if id.UnmarshalText([]byte(v.path("invitation"))) != nil {
		return api.Refuse(api.CodeNotFound, "There is no such invitation here.")
	}
	if err := v.web.accounts.RevokeInvitation(v.r.Context(), v.caller, id); err != nil {
		return err
	}
	return v.to("/settings/members", "Revoked the invitation")
}

func (v *visit) memberID() (id api.UserID, err error) {
	if id.UnmarshalText([]byte(v.path("user"))) != nil {
		return 0, api.Refuse(api.CodeNotFound, "There is no such member here.")
	}
	return id, nil
}

func (v *visit) setRole() error {
	id, err := v.memberID()
	if err != nil {
		return err
	}
	m, err := v.web.engine.SetRole(v.r.Context(), v.caller, id, api.Role(v.r.PostForm.Get("role")))
	if err != nil {
		return err
	}
	return v.to("/settings/members", m.Name+" is "+string(m.Role)+" now")
}

func (v *visit) askRemove() error {
	id, err := v.memberID()
	if err != nil {
		return err
	}
	if err := v.refuse(v.caller.CanManageMembers(), "Members are removed by owners of this workspace"); err != nil {
		return err
	}
	list, err := v.web.engine.Members(v.r.Context(), v.caller, settingsList)
	if err != nil {
		return err
	}
	for _, m := range list.Items {
		if m.UserID == id {
			c := Confirm{
				ID: "ask-remove", Title: "Remove “" + m.Name + "”?",
				Text:   "Their open sessions are cancelled, their local workers deleted, their API keys revoked and the agents that run as them paused.",
				Action: "/settings/members/" + id.String() + "/remove", Do: "Remove", Keep: "Keep", Back: "/settings/members", Risky: true,
			}
			return v.page(http.StatusOK, Shell{Title: c.Title, Place: "settings"}, confirmPage(c))
		}
	}
	return api.Refuse(api.CodeNotFound, "There is no such member here.")
}

func (v *visit) removeMember() error {
	id, err := v.memberID()
	if err != nil {
		return err
	}
	if _, err := v.web.engine.RemoveMember(v.r.Context(), v.caller, id); err != nil {
		return err
	}
	if id == v.caller.UserID {
		return v.to("/", "")
	}
	return v.to("/settings/members", "Removed the member")
}

// keysPage is what settings.templ draws of the API keys.
type keysPage struct {
	tabs []Tab
	keys []api.Key
	made *api.Key // just created: with the key itself, this once
	now  time.Time
	name Input
	bad  string // about the scopes
}

func (v *visit) keys() error { return v.drawKeys(http.StatusOK, nil, nil) }

func (v *visit) drawKeys(status int, made *api.Key, bad map[string]string) error {
	list, err := v.web.accounts.Keys(v.r.Context(), v.caller, settingsList)
	if err != nil {
		return err
	}
	p := keysPage{
		tabs: v.settingsTabs("API keys"), keys: list.Items, made: made, now: v.web.engine.Now(), bad: sentence(bad["scopes"]),
		name: Input{ID: "name", Label: "Name", Hint: "Which program has it.", Value: v.r.PostForm.Get("name"), Error: sentence(bad["name"]), Required: true},
	}
	if made != nil {
		p.name.Value = ""
	}
	return v.page(status, Shell{Title: "API keys", Place: "settings", Now: p.now}, keys(p))
}

func (v *visit) createKey() error {
	in := api.KeyInput{Name: v.r.PostForm.Get("name")}
	for _, s := range api.Scopes {
		if v.r.PostForm.Get(string(s)) != "" {
			in.Scopes = append(in.Scopes, s)
		}
	}
	k, err := v.web.accounts.CreateKey(v.r.Context(), v.caller, in)
	if bad, ok := fieldErrors(err); ok {
		return v.drawKeys(http.StatusUnprocessableEntity, nil, bad)
	}
	if err != nil {
		return err
	}
	k.CalendarURL = k.Calendar(v.web.homeOf(v.r), v.caller.Workspace)
	return v.drawKeys(http.StatusOK, &k, nil)
}

func (v *visit) revokeKey() error {
	var id api.KeyID
	if id.UnmarshalText([]byte(v.path("key"))) != nil {
		return api.Refuse(api.CodeNotFound, "There is no such API key here.")
	}
	if err := v.web.accounts.RevokeKey(v.r.Context(), v.caller, id); err != nil {
		return err
	}
	return v.to("/settings/keys", "Revoked the key")
}

func scopeList(scopes []api.Scope) string {
	words := make([]string, len(scopes))
	for i, s := range scopes {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}

func scopeHint(s api.Scope) string {
	switch s {
	case api.ScopeRead:
		return "Lists, sessions, their output, events"
	case api.ScopeTrigger:
		return "Run agents, retry sessions"
	case api.ScopeTasks:
		return "Make, change, claim and dispatch tasks"
	case api.ScopeCalendar:
		return "Coming runs as a calendar. Alone, it makes an address that calendar programs subscribe to"
	default:
		return "Cancel and stop sessions"
	}
}

// programsPage is what settings.templ draws of the programs that registered themselves.
type programsPage struct {
	tabs     []Tab
	programs []api.RegisteredProgram
	now      time.Time
}

func (v *visit) programs() error {
	list, err := v.web.accounts.Registrations(v.r.Context(), v.who, settingsList)
	if err != nil {
		return err
	}
	p := programsPage{tabs: v.settingsTabs("Programs"), programs: list.Items, now: v.web.engine.Now()}
	return v.page(http.StatusOK, Shell{Title: "Programs", Place: "settings", Now: p.now}, programs(p))
}

func (v *visit) revokeProgram() error {
	var id api.ClientID
	if id.UnmarshalText([]byte(v.path("program"))) != nil {
		return api.Refuse(api.CodeNotFound, "There is no such program here.")
	}
	if err := v.web.accounts.RevokeRegistration(v.r.Context(), v.who, id); err != nil {
		return err
	}
	return v.to("/settings/programs", "Revoked the program")
}

// signInWords say how many people are signed in through a program.
func signInWords(n int64) string {
	if n == 0 {
		return "signed in by nobody"
	}
	return Count(int(n), "sign-in", "sign-ins")
}

// accountPage is what settings.templ draws of the reader's own account.
type accountPage struct {
	tabs       []Tab
	account    api.Account
	signIns    []api.SignIn
	workspaces []api.Workspace
	workspace  string // slug of the one that is shown
	mayLink    string // the provider whose account can be linked; "" = none
	linksAt    bool   // there is an external provider
	now        time.Time
	typed      func(id, label, hint, kind string) Input
}

func (v *visit) account() error { return v.drawAccount(http.StatusOK, nil) }

func (v *visit) drawAccount(status int, bad map[string]string) error {
	ctx, eng := v.r.Context(), v.web.engine
	p := accountPage{tabs: v.settingsTabs("Account"), workspace: v.caller.Workspace, mayLink: v.web.provider.Name, linksAt: v.web.provider.Name != "", now: eng.Now()}
	var err error
	if p.account, err = v.web.accounts.Account(ctx, v.who); err != nil {
		return err
	}
	for _, i := range p.account.Identities {
		if i.Issuer == v.web.provider.Issuer {
			p.mayLink = ""
		}
	}
	list, err := v.web.accounts.SignIns(ctx, v.who, settingsList)
	if err != nil {
		return err
	}
	p.signIns = list.Items
	if p.workspaces, err = v.web.accounts.Workspaces(ctx, v.who); err != nil {
		return err
	}
	p.typed = func(id, label, hint, kind string) Input {
		in := Input{ID: id, Label: label, Hint: hint, Type: kind, Error: sentence(bad[id])}
		if kind != "password" {
			in.Value = map[string]string{"login": p.account.Login, "name": p.account.Name}[id]
			if v.r.PostForm.Has(id) {
				in.Value = v.r.PostForm.Get(id)
			}
		}
		return in
	}
	return v.page(status, Shell{Title: "Account", Place: "settings", Now: p.now}, accountOf(p))
}

func (v *visit) setLogin() error {
	form := v.r.PostForm
	_, err := v.web.accounts.SetLogin(v.r.Context(), v.who, api.LoginInput{
		Login: form.Get("login"), Name: form.Get("name"), Current: form.Get("current"), Password: form.Get("password"),
	}, v.web.fromOf(v.r))
	if bad, ok := fieldErrors(err); ok {
		return v.drawAccount(http.StatusUnprocessableEntity, bad)
	}
	if err != nil {
		return err
	}
	return v.to("/settings/account", "Saved; your other browsers are signed out")
}

func (v *visit) endSignIn() error {
	var id api.TokenID
	if id.UnmarshalText([]byte(v.path("signin"))) != nil {
		return api.Refuse(api.CodeNotFound, "There is no such sign-in.")
	}
	if err := v.web.accounts.EndSignIn(v.r.Context(), v.who, id); err != nil {
		return err
	}
	return v.to("/settings/account", "Signed it out")
}

func (v *visit) unlink() error {
	var id api.IdentityID
	if id.UnmarshalText([]byte(v.path("identity"))) != nil {
		return api.Refuse(api.CodeNotFound, "There is no such linked account.")
	}
	if err := v.web.accounts.Unlink(v.r.Context(), v.who, id); err != nil {
		return err
	}
	return v.to("/settings/account", "Unlinked; your other browsers are signed out")
}

func (v *visit) signOutEverywhere() error {
	if _, err := v.web.accounts.SignOutEverywhere(v.r.Context(), v.who); err != nil {
		return err
	}
	return v.to("/settings/account", "Your other browsers are signed out")
}

// chooseWorkspace makes the browser's pages show another workspace.
func (v *visit) chooseWorkspace() error {
	in, err := v.web.accounts.In(v.r.Context(), v.who, v.r.PostForm.Get("workspace"))
	if err != nil {
		return err
	}
	http.SetCookie(v, &http.Cookie{Name: WorkspaceCookie, Value: in.Workspace, Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	return v.to("/", "")
}

func nobodysFrom(*http.Request) account.From { return account.From{} }

func plainHome(r *http.Request) string { return "http://" + r.Host }

// signInWord is what somebody did when a sign-in began.
func signInWord(kind string) string {
	if kind == "token" {
		return "made"
	}
	return "signed in"
}
