package api_test

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"stint/api"
)

var queryNow = time.Date(2026, 11, 30, 12, 0, 0, 0, time.FixedZone("", 3600))

func at(text string) api.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return api.Time{Time: t.UTC()}
}

func TestParseSessionQuery_EachPartNarrowsWhatItNames(t *testing.T) {
	session := api.SessionID(1 << 40)
	id := session.String()
	from := func(least int64) api.Range { return api.Range{Min: least, Max: math.MaxInt64, Set: true} }
	for query, want := range map[string]api.SessionFilter{
		"":                              {},
		"status:error agent:deps":       {Statuses: []api.Status{api.Failed}, Agent: "deps"},
		"status:awaiting-input,stale":   {Statuses: []api.Status{api.AwaitingInput, api.Stale}},
		"-status:complete phase:failed": {Statuses: api.Phase("failed").Statuses()},
		"worker:desk by:scheduler":      {Worker: "desk", Trigger: api.ByScheduler},
		"since:7d until:yesterday":      {Since: at("2026-11-23T11:00:00Z"), Until: at("2026-11-28T23:00:00Z")},
		"took:>10m took:<=2h":           {Took: api.Range{Min: 600_000_001, Max: 7_200_000_000, Set: true}},
		"cost:>1 tokens:>=100k":         {CostMicros: from(1_000_001), Tokens: from(100_000)},
		"cost:0.5..2 tries:2":           {CostMicros: api.Range{Min: 500_000, Max: 2_000_000, Set: true}, Tries: api.Range{Min: 2, Max: 2, Set: true}},
		"code:timeout is:marked":        {Code: "TIMEOUT", Marked: true},
		"is:archived is:kept":           {OnlyArchived: true, Kept: true},
		"is:unlanded " + id:             {Unlanded: true, IDs: []api.SessionID{session}},
		`out "of  memory" 12:30 ./a:b`:  {Words: []string{"out", "of  memory", "12:30", "./a:b"}},
		`agent:"two words" "by:me"`:     {Agent: "two words", Words: []string{"by:me"}},
		`it's "unclosed here`:           {Words: []string{"it's", "unclosed here"}},
	} {
		got, err := api.ParseSessionQuery(query, queryNow)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %+v (%v)\nwant %+v", query, got, err, want)
		}
	}
}

func TestParseSessionQuery_WhatCannotBeReadIsNamedWithTheMend(t *testing.T) {
	for query, told := range map[string]string{
		"colour:red":                   "there is no field colour; write status:error,stale",
		"workers:desk":                 "did you mean worker:desk?",
		"agnet:deps":                   "did you mean agent:deps?",
		"statu:error":                  "there is no field statu: did you mean status:error,stale?",
		"status:broken":                `"broken" is not a status: pending`,
		"status:active -status:active": "no status is left",
		"agent:a agent:b":              "it says a already",
		"agent:":                       "says nothing after the colon",
		"-agent:a":                     "a minus is possible before status and phase only",
		"by:me":                        "must be one of user, scheduler",
		"since:soon":                   "is no time",
		"took:>fast":                   "is no length of time",
		"cost:much":                    "is no amount in US dollars",
		"cost:>1..2":                   "either a comparison or two ends",
		"tokens:=>3":                   "=> is no comparison",
		"is:nice":                      "must be one of archived, kept, marked, unlanded",
		"id:x":                         "",
		"a b c d e":                    "more than 4 texts",
		strings.Repeat("x", 2001):      "at most 2000 bytes",
	} {
		_, err := api.ParseSessionQuery(query, queryNow)
		refused, ok := errors.AsType[*api.Error](err)
		if !ok || len(refused.Fields) == 0 || refused.Fields[0].Field != "query" || !strings.Contains(refused.Fields[0].Detail, told) {
			t.Errorf("%s: %v, want %q", query, err, told)
		}
	}
	f, err := api.ParseSessionQuery("agent:deps nope:1 text", queryNow)
	if err == nil || f.Agent != "deps" || !slices.Equal(f.Words, []string{"text"}) {
		t.Errorf("the rest of a query with one bad part is %+v (%v)", f, err)
	}
}

func TestWithoutFields_TheRestIsAsItWasWritten(t *testing.T) {
	if got := api.WithoutFields(`status:error since:7d "two words" -status:stale x`, "status"); got != `since:7d "two words" x` {
		t.Error(got)
	}
}

// What a filter is written as is read as the same filter.
func FuzzQueryText(f *testing.F) {
	for _, query := range []string{
		`status:error agent:deps worker:desk since:7d cost:>1 text`, `-phase:failed took:1m30s..2h "two words"`, `is:kept 12:30 "a:b" tries:<3 cost:<0.25`,
		`took:<90s tokens:<=1M code:x until:2026-01-02T03:04`, `"`, `:`, `a:`, `""`, "a\"b\" c",
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		first, err := api.ParseSessionQuery(query, queryNow)
		if err != nil {
			return
		}
		text := first.QueryText()
		second, err := api.ParseSessionQuery(text, queryNow)
		if len(text) > api.MaxQuery {
			return
		}
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("%q is written as %q, which is\n %+v (%v), not\n %+v", query, text, second, err, first)
		}
	})
}

func TestSessionFilter_AndIsWhatBothAsk(t *testing.T) {
	parse := func(query string) api.SessionFilter {
		f, err := api.ParseSessionQuery(query, queryNow)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	got, clash := parse("status:error,stale agent:a cost:>1 since:2d x").And(parse("status:error cost:<3 since:1d is:kept y"))
	if want := parse("status:error agent:a cost:>1 cost:<3 since:1d is:kept x y"); clash != "" || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v (%s), want %+v", got, clash, want)
	}
	for other, field := range map[string]string{"agent:b": "agent", "status:active": "status", "worker:w": ""} {
		if _, clash := parse("agent:a status:error").And(parse(other)); clash != field {
			t.Errorf("with %s the clash is %q", other, clash)
		}
	}
}
