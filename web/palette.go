package web

import (
	"net/http"
	"strings"

	"stint/api"
)

// How many of each kind a search offers.
const (
	foundAgents   = 5
	foundSessions = 6
	foundTasks    = 5
	foundPages    = 6
)

// maxSearch is how long the text of a search may be, in bytes.
const maxSearch = 200

// offer is one result of a search: a place to go to, or something to do there.
type offer struct {
	icon, word, note, url string
	cli                   string // the same on the command line, "" where there is nothing like it
}

// offerGroup is the results of one kind.
type offerGroup struct {
	title string
	all   []offer
}

// search is the page of the search, for browsers without scripts and for phones.
func (v *visit) search() error {
	text := v.searched()
	found, err := v.found(text)
	if err != nil {
		return err
	}
	return v.page(http.StatusOK, Shell{Title: "Search"}, searchPage(text, found))
}

// palette is what the dialog of the search shows.
func (v *visit) palette() error {
	found, err := v.found(v.searched())
	if err != nil {
		return err
	}
	return v.draw(http.StatusOK, paletteResults(found), nil)
}

func (v *visit) searched() string {
	text := strings.TrimSpace(v.r.URL.Query().Get("q"))
	return strings.ToValidUTF8(text[:min(len(text), maxSearch)], "")
}

// found are the agents, sessions, tasks and pages in whose names a text stands; without a text,
// what was last run and where one can go.
func (v *visit) found(text string) (out []offerGroup, err error) {
	add := func(title string, all []offer) {
		if len(all) > 0 {
			out = append(out, offerGroup{title, all})
		}
	}
	agents, err := v.foundAgents(text)
	if err != nil {
		return nil, err
	}
	sessions, err := v.foundSessions(text)
	if err != nil {
		return nil, err
	}
	tasks, err := v.foundTasks(text)
	if err != nil {
		return nil, err
	}
	pages, err := v.foundPages(text)
	if err != nil {
		return nil, err
	}
	add("Agents", agents)
	add("Sessions", sessions)
	add("Tasks", tasks)
	add("Pages", pages)
	return out, nil
}

func (v *visit) foundAgents(text string) (out []offer, err error) {
	agents, err := v.web.engine.FindAgents(v.r.Context(), v.caller, text, foundAgents)
	for _, a := range agents {
		out = append(out, offer{"bot", a.Name, a.Slug, agentURL(a.Slug), "stint agent show " + a.Slug})
		if v.caller.CanRun(a.Mode) {
			out = append(out, offer{"play", "Run " + a.Name, a.Slug, agentURL(a.Slug) + "/run", "stint run " + a.Slug})
		}
	}
	return out, err
}

// foundSessions reads the text as the list of sessions does: an id, words of a title or prompt, or
// the fields of a query. One that can't be read finds none.
func (v *visit) foundSessions(text string) (out []offer, err error) {
	f, err := api.ParseSessionQuery(text, v.web.engine.Now().In(v.prefs.zone))
	if err != nil {
		return nil, nil //nolint:nilerr // half a query is typed on the way to a whole one
	}
	list, err := v.web.engine.Sessions(v.r.Context(), v.caller, f, api.Page{Limit: foundSessions})
	for _, s := range list.Items {
		out = append(out, offer{StatusIcon(s.Status), titleOf(s), s.AgentSlug + " · " + StatusWord(s.Status), sessionURL(s.ID), "stint show " + s.ID.String()})
	}
	return out, err
}

func (v *visit) foundTasks(text string) (out []offer, err error) {
	if text == "" {
		return nil, nil
	}
	var tasks []api.Task
	if t, err := v.web.engine.Task(v.r.Context(), v.caller, text); err == nil {
		tasks = append(tasks, t)
	} else {
		list, err := v.web.engine.Tasks(v.r.Context(), v.caller, api.TaskFilter{Query: text}, api.Page{Limit: foundTasks})
		if err != nil {
			return nil, err
		}
		tasks = list.Items
	}
	for _, t := range tasks {
		out = append(out, offer{"list-todo", t.Title, t.Key, taskURL(t.Key), "stint task show " + t.Key})
	}
	return out, nil
}

// foundPages are the places of the rail, the settings, what can be made, and the documents.
func (v *visit) foundPages(text string) (out []offer, err error) {
	add := func(icon, word, url, cli string) {
		if len(out) < foundPages && strings.Contains(strings.ToLower(word), strings.ToLower(text)) {
			out = append(out, offer{icon: icon, word: word, url: url, cli: cli})
		}
	}
	add("play", "Run an agent", "/run", "stint run AGENT")
	if v.caller.CanEditAgents() {
		add("plus", "New agent", "/agents/new", "stint agent create SLUG --run COMMAND")
	}
	if v.caller.CanEditTasks() {
		add("plus", "New task", "/tasks/new", "stint task create TITLE")
	}
	for _, p := range (Shell{Audits: v.caller.CanAudit()}).shown() {
		add(p.icon, p.word, p.url, "")
	}
	if text == "" {
		return out, nil
	}
	for _, t := range v.settingsTabs("") {
		add("shield", "Settings: "+t.Label, t.URL, "")
	}
	all, err := helpPages()
	for _, d := range all {
		add("info", "Help: "+d.Title, "/help/"+d.Name, "stint docs "+d.Name)
	}
	return out, err
}
