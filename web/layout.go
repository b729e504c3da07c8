package web

import "time"

// Shell is what [Layout] needs beside the page itself.
type Shell struct {
	Title    string // of the window, most specific part first
	Place    string // the rail's current entry: home, inbox, sessions, tasks, agents, schedules, workers, insights, activity, settings
	NeedsYou int    // things in the inbox
	Stream   string // address of the page's live stream; "" = the page isn't live
	Done     string // what the last action did, said once
	Theme    string // auto, light, dark
	Density  string // auto, compact
	Keys     bool   // single-letter shortcuts are on
	Prose    bool   // the page is a long text
	Audits   bool   // the reader may see the activity
	Talk     bool   // the page holds a conversation or questions
	Changes  bool   // … or diffs
	Plots    bool   // … or plots
	Now      time.Time
}

// htmxConfig switches off what the content policy forbids and what this product doesn't want:
// styles added by script, foreign requests. A live update leaves alone what the reader has
// opened and what the page's script has shown.
const htmxConfig = `{"includeIndicatorCSS":false,"mode":"same-origin","history":false,"transitions":false,"extensions":"sse","morphIgnore":["data-htmx-powered","open","hidden"]}`

// railEntry is a place that the rail leads to. A rare one has no room in a phone's bottom bar
// and stands at the page's foot there.
type railEntry struct {
	key, word, icon, url, letter string
	rare                         bool
}

var navigation = []railEntry{
	{"home", "Home", "house", "/", "h", false},
	{"inbox", "Inbox", "inbox", "/inbox", "i", false},
	{"sessions", "Sessions", "rows-3", "/sessions", "s", false},
	{"tasks", "Tasks", "list-todo", "/tasks", "t", false},
	{"agents", "Agents", "bot", "/agents", "a", false},
	{"schedules", "Schedules", "calendar-clock", "/schedules", "c", true},
	{"workers", "Workers", "server", "/workers", "w", false},
	{"insights", "Insights", "chart-column", "/insights", "n", true},
	{"activity", "Activity", "history", "/activity", "l", true},
	{"settings", "Settings", "shield", "/settings/members", "m", false},
}

// shown are the places that the reader may go to.
func (s Shell) shown() []railEntry {
	out := make([]railEntry, 0, len(navigation))
	for _, p := range navigation {
		if p.key != "activity" || s.Audits {
			out = append(out, p)
		}
	}
	return out
}

type theme struct{ value, word, icon string }

var themes = []theme{
	{"auto", "Theme of the system", "sun-moon"},
	{"light", "Light theme", "sun"},
	{"dark", "Dark theme", "moon"},
}

type shortcut struct {
	keys []string
	what string
}

var shortcuts = []shortcut{
	{[]string{"g", "h"}, "Home"},
	{[]string{"g", "i"}, "Inbox"},
	{[]string{"g", "s"}, "Sessions"},
	{[]string{"g", "t"}, "Tasks"},
	{[]string{"g", "a"}, "Agents"},
	{[]string{"g", "w"}, "Workers"},
	{[]string{"g", "c"}, "Schedules"},
	{[]string{"g", "n"}, "Insights"},
	{[]string{"g", "l"}, "Activity"},
	{[]string{"g", "m"}, "Settings and members"},
	{[]string{"j", "k"}, "Next, previous row"},
	{[]string{"Enter"}, "Open the row"},
	{[]string{"n"}, "New session, or new task"},
	{[]string{"[", "]"}, "On the board: move the card"},
	{[]string{"Ctrl", "K"}, "Search everything"},
	{[]string{"/"}, "Search in this page, or everything"},
	{[]string{"."}, "Pause live updates"},
	{[]string{"t"}, "Change theme"},
	{[]string{"?"}, "This list"},
}

func pageTitle(s Shell) string {
	if s.Title == "" {
		return "stint"
	}
	return s.Title + " · stint"
}
