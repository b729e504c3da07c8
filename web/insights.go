package web

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"stint/api"
	"stint/engine"
)

// insightsPage is what insights.templ draws.
type insightsPage struct {
	engine.InsightsView
	days  int
	agent string
}

// insightDays are the lengths of time that the page offers.
var insightDays = []int{7, usualDays, 90, engine.MostInsightDays}

const usualDays = 30 // where nothing is said

func (v *visit) insights() error {
	p, err := v.readInsights()
	if err != nil {
		return err
	}
	return v.page(http.StatusOK, Shell{Title: "Insights", Place: "insights", Plots: true, Now: p.At}, insights(p))
}

func (v *visit) readInsights() (p insightsPage, err error) {
	q := v.r.URL.Query()
	p.agent, p.days = q.Get("agent"), usualDays
	if text := q.Get("days"); text != "" {
		if p.days, err = strconv.Atoi(text); err != nil {
			return p, api.BadField("days", "must be a number of days")
		}
	}
	if p.InsightsView, err = v.web.engine.Insights(v.r.Context(), v.caller, p.days, p.agent); err != nil {
		return p, err
	}
	if p.agent != "" && !slices.Contains(p.Among, p.agent) {
		p.Among = append(p.Among, p.agent)
	}
	return p, nil
}

func (p insightsPage) url(path string, days int) string {
	q := url.Values{"days": {strconv.Itoa(days)}}
	if p.agent != "" {
		q.Set("agent", p.agent)
	}
	return path + "?" + q.Encode()
}

// exportInsights writes the figures of each day as CSV.
func (v *visit) exportInsights() error {
	p, err := v.readInsights()
	if err != nil {
		return err
	}
	v.Header().Set("Content-Type", "text/csv; charset=utf-8")
	v.Header().Set("Content-Disposition", `attachment; filename="stint-insights.csv"`)
	w := csv.NewWriter(v)
	_ = w.Write([]string{"day", "complete", "no_plain_success", "failed", "cancelled", "run_seconds", "wait_seconds", "tokens", "cost_usd"})
	for i, f := range p.Days {
		_ = w.Write([]string{
			p.day(i).Format(time.DateOnly), number(f.Complete), number(f.Marked), number(f.Failed), number(f.Cancelled),
			number(int64(f.Run / time.Second)), number(int64(f.Wait / time.Second)), number(f.Tokens), fmt.Sprintf("%d.%06d", f.CostMicros/1_000_000, f.CostMicros%1_000_000),
		})
	}
	if w.Flush(); w.Error() != nil {
		v.web.log.Debug("a reader went away", "path", v.r.URL.Path, "error", w.Error())
	}
	return nil
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func (p insightsPage) day(i int) time.Time { return p.First.AddDate(0, 0, i) }

// share is a success in per cent, "" where nothing succeeded or failed.
func share(f engine.Figures) string { return perCent(f.Judged()) }

func usualRun(f engine.Figures) string {
	run, _ := f.Usual()
	return spanOrDash(run)
}

func usualWait(f engine.Figures) string {
	if f.Started == 0 {
		return spanOrDash(0)
	}
	_, wait := f.Usual()
	return Span(wait)
}

// costWords are an amount, "" for none.
func costWords(micros int64) string {
	if micros == 0 {
		return ""
	}
	return api.Dollars(micros)
}

// plot is a row of columns, one for each day.
type plot struct {
	title, most string // what it shows, and how much the highest column is
	columns     []plotColumn
}

type plotColumn struct {
	title string
	parts []plotPart
}

// plotPart is a stretch of a column, measured from the top in hundredths of the plot.
type plotPart struct {
	class   string
	y, tall float64
}

// runsPlot has the ends of each day, one above the other.
func (p insightsPage) runsPlot() plot {
	return p.plotted("Sessions that ended", func(n int64) string { return Count(int(n), "session", "sessions") }, func(f engine.Figures) []valued {
		return []valued{
			{"s-complete", number(f.Complete-f.Marked) + " complete", f.Complete - f.Marked},
			{"s-awaiting_input", number(f.Marked) + " no plain success", f.Marked},
			{"s-error", number(f.Failed) + " failed", f.Failed},
			{"s-cancelled", number(f.Cancelled) + " cancelled", f.Cancelled},
		}
	})
}

func (p insightsPage) costPlot() plot {
	return p.plotted("Cost", api.Dollars, func(f engine.Figures) []valued {
		return []valued{{"s-active", api.Dollars(f.CostMicros), f.CostMicros}}
	})
}

// valued is a part of a column before it is laid out.
type valued struct {
	class, word string
	n           int64
}

func (p insightsPage) plotted(title string, words func(int64) string, of func(engine.Figures) []valued) plot {
	var highest int64
	for _, f := range p.Days {
		highest = max(highest, sumOf(of(f)))
	}
	out := plot{title: title, most: words(highest)}
	for i, f := range p.Days {
		col, at := plotColumn{}, 100.0
		var told []string
		for _, v := range of(f) {
			if v.n == 0 {
				continue
			}
			tall := float64(v.n) / float64(highest) * 100
			at -= tall
			col.parts = append(col.parts, plotPart{v.class, at, tall})
			told = append(told, v.word)
		}
		col.title = p.day(i).Format("Mon 2 Jan") + ": " + cmp.Or(strings.Join(told, ", "), "none")
		out.columns = append(out.columns, col)
	}
	return out
}

func sumOf(values []valued) (sum int64) {
	for _, v := range values {
		sum += v.n
	}
	return sum
}

// label tells the plot to whoever can't see it.
func (p plot) label() string {
	return fmt.Sprintf("%s by day; the most on one day: %s. The table below has them all.", p.title, p.most)
}

func (p plot) box() string { return fmt.Sprintf("0 0 %d 100", len(p.columns)*10) }

func length(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }

// failedURL leads to the sessions that failed in one way.
func (p insightsPage) failedURL(f engine.Failures) string {
	words := fmt.Sprintf("status:error code:%s since:%dd", f.Code, p.days)
	if p.agent != "" {
		words += " agent:" + p.agent
	}
	return "/sessions?" + url.Values{"q": {words}}.Encode()
}

// most are the agents in order of something, at most so many, without those that have none.
func most(agents []engine.AgentFigures, n int, of func(engine.AgentFigures) float64) []engine.AgentFigures {
	out := slices.DeleteFunc(slices.Clone(agents), func(a engine.AgentFigures) bool { return of(a) <= 0 })
	slices.SortStableFunc(out, func(a, b engine.AgentFigures) int { return cmp.Compare(of(b), of(a)) })
	return out[:min(n, len(out))]
}

const topAgents = 5

// slowest, costliest and flakiest are the agents to look at first. Flaky is one that sometimes
// succeeds and sometimes fails: the nearer to half and half, and the more often, the flakier.
func (p insightsPage) slowest() []engine.AgentFigures {
	return most(p.Agents, topAgents, func(a engine.AgentFigures) float64 { run, _ := a.Usual(); return float64(run) })
}

func (p insightsPage) costliest() []engine.AgentFigures {
	return most(p.Agents, topAgents, func(a engine.AgentFigures) float64 { return float64(a.CostMicros) })
}

func (p insightsPage) flakiest() []engine.AgentFigures {
	return most(p.Agents, topAgents, func(a engine.AgentFigures) float64 {
		return float64(min(a.Complete-a.Marked, a.Failed))
	})
}
