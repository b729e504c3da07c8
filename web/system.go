package web

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/engine"
)

const (
	systemPath = "/system"
	bundlePath = "/system/support-bundle.json"
)

// systemPage is what system.templ draws.
type systemPage struct {
	api.System
	tabs []Tab
	now  time.Time
	zone *time.Location
}

func (v *visit) system() error {
	found, err := v.web.engine.System(v.r.Context(), v.caller)
	if err != nil {
		return err
	}
	p := systemPage{System: found, tabs: v.settingsTabs("System"), now: v.web.engine.Now(), zone: v.prefs.zone}
	return v.page(http.StatusOK, Shell{Title: "System", Place: "settings", Now: p.now}, system(p))
}

// bundle sends what somebody who helps needs to know, as a file.
func (v *visit) bundle() error {
	out, err := v.web.engine.SupportBundle(v.r.Context(), v.caller, engine.Looking{Rules: time.Second, Pages: time.Second})
	if err != nil {
		return err
	}
	text, err := json.Marshal(out, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("write the support bundle: %w", err)
	}
	h := v.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Disposition", `attachment; filename="stint-support.json"`)
	_, err = v.Write(text)
	return err
}

// bytesWords is a size for people.
func bytesWords(n int64) string {
	switch {
	case n < 1<<10:
		return strconv.FormatInt(n, 10) + " B"
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// workersWords says how many workers are in which state.
func (p systemPage) workersWords() string {
	var parts []string
	for _, state := range []api.WorkerState{api.Online, api.WorkerStale, api.Offline} {
		if n := p.Work.Workers[state]; n > 0 {
			parts = append(parts, strconv.FormatInt(n, 10)+" "+string(state))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// keptWords says within which limits things of a kind stay.
func keptWords(l api.RetentionLimit) string {
	var parts []string
	if l.AgeSeconds > 0 {
		parts = append(parts, Span(time.Duration(l.AgeSeconds)*time.Second))
	}
	if l.Count > 0 {
		parts = append(parts, "the newest "+strconv.FormatInt(l.Count, 10))
	}
	if l.Bytes > 0 {
		parts = append(parts, bytesWords(l.Bytes))
	}
	if len(parts) == 0 {
		return "without limit"
	}
	return strings.Join(parts, ", ")
}

// removedWords says how much the last round removed.
func removedWords(r api.Removed) string {
	var parts []string
	for _, one := range []struct {
		n    int64
		what string
	}{
		{r.Sessions, "sessions"}, {r.Output, "sessions' output"}, {r.Events, "events"}, {r.Audit, "entries of the audit"}, {r.Deliveries, "messages"},
	} {
		if one.n > 0 {
			parts = append(parts, strconv.FormatInt(one.n, 10)+" "+one.what)
		}
	}
	return strings.Join(parts, ", ")
}
