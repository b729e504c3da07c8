package queries_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stint/db"
)

// grown are the tables that grow with every session or task, so nothing may go through all of
// one while somebody waits.
var grown = []string{
	"sessions", "items", "events", "activities", "claims", "prompts", "messages", "deliveries", "ledger", "threads", "idempotency_keys", "late_results",
	"tasks", "task_comments", "task_blockers", "removed_spans", "outputs",
	"changes", "changed_files", "landings", "review_comments",
}

// wholeWorkspace are the statements that go through everything of a workspace in a table that
// grows, and why they may.
var wholeWorkspace = map[string]string{
	"CountUnlanded":  "of an index that holds what waits alone; LIMIT bounds it",
	"FitSessions":    "reach bounds it, or few are in the index",
	"CountTasks":     "tasks are made by people: a hundred thousand take 25 ms, in the index alone",
	"NextTaskNumber": "the largest is the index's last entry",
	"TasksHeldBy":    "of an index that holds the leased ones alone",
	"TasksLeased":    "likewise",
	"ViewFailed":     "of an index that holds what nobody has archived; LIMIT bounds it",
	"ViewFinished":   "LIMIT in the order of the index bounds it",
}

// sorting are the statements that sort rows of a table that grows, and why they are few.
var sorting = map[string]string{
	"AwaitedProcesses":  "of sessions that wait for one worker",
	"WaitingIDsOfAgent": "what waits for one agent",
	"OpenOfMember":      "what has not ended",
	"MeasureOpen":       "counts per agent of what has not ended, in the index alone",
	"OpenOfAgent":       "what has not ended",
	"WaitingScheduled":  "what has not ended",
	"HoldersOfFolder":   "claims that are live or not drained",
	"ListLedger":        "ranges of one agent's slots",
	"BlockedBy":         "tasks around one task",
	"BlockersOf":        "tasks around one task",
	"UrgentTasks":       "what one person can begin",
	"ViewFailed":        "at most scan",
	"ViewRunning":       "live claims",
}

// needs names for each index a statement that goes by it, or what else it is for.
var needs = map[string]string{
	"program_tokens_program":    unasked + "a program with tokens stays",
	"late_results_session":      "DropLateResultsOf",
	"activities_key":            "ActivityByKey",
	"activities_session":        "ListActivities",
	"agents_due":                "DueAgents",
	"agents_slug":               "AgentBySlug",
	"api_keys_live":             "KeysOf",
	"tries_age":                 "DropOldAttempts",
	"changes_waiting":           "FitSessions",
	"changes_thread":            "LatestChangesOfThread",
	"landings_open":             unasked + "a session has one open request to land",
	"landings_asked":            "AskedLanding",
	"landings_by":               "AskedLandingsBy",
	"landings_session":          "LastLanding",
	"review_comments_mine":      "ReviewOf",
	"claims_agent":              "HoldersOfAgent",
	"claims_drain":              "DueDrains",
	"claims_expiry":             "ClampClaims",
	"claims_live":               "LiveClaimOf",
	"claims_request":            "ClaimByRequest",
	"claims_session":            "LatestClaimOf",
	"claims_thread":             "HoldersOfThread",
	"claims_worker":             "LiveClaimsOfWorker",
	"ledger_not_run":            "ViewNotRun",
	"deliveries_due":            "DueDeliveries",
	"deliveries_cause":          "ToldOf",
	"deliveries_parts":          "PartsOf",
	"deliveries_untold":         "UntoldOf",
	"deliveries_webhook":        "DeliveredSince",
	"device_codes_age":          "DropOldDeviceCodes",
	"events_agent":              "EventsOfAgent",
	"events_other":              "AnyEventOfType",
	"events_session":            "AuditOfSession",
	"events_task":               "EventsOfTask",
	"idempotency_age":           "DropIdempotencyKeys",
	"identities_user":           "AnyOwnersIdentity",
	"invitations_open":          "InvitationsOf",
	"items_client":              unasked + "an output is there once",
	"ledger_agent":              "LatestLedger",
	"ledger_fired":              unasked + "a slot fires once",
	"members_user":              "WorkspacesOf",
	"attachments_session":       "AttachmentsOf",
	"messages_client":           "MessageByClientID",
	"messages_session":          "DropMessagesOf",
	"messages_thread":           "MessagesAfter",
	"oauth_clients_age":         "DropOldOAuthClients",
	"oauth_clients_unused":      "DropUnusedOAuthClients",
	"oauth_codes_age":           "DropOldOAuthCodes",
	"detours_age":               "DropOldOIDCSignIns",
	"program_tokens_age":        "DropOldProgramTokens",
	"programs_client":           "OAuthClients",
	"programs_user":             "ProgramsOf",
	"prompts_deadline":          "DueDeadlines",
	"prompts_secret":            "SecretPrompts",
	"prompts_session":           "AnsweredSince",
	"sessions_admit":            "DueAdmissions",
	"sessions_affinity":         "LiftedByTime",
	"sessions_after":            "Followers",
	"sessions_agent":            "FitSessions",
	"sessions_asking":           "ViewAsking",
	"sessions_awaiting_process": "AwaitedProcesses",
	"sessions_claimable":        "NextLane",
	"sessions_ended":            "FitSessions",
	"sessions_failed":           "ViewFailed",
	"sessions_held":             "HeldByOverlap",
	"sessions_newest":           "FitSessions",
	"sessions_open":             "FitSessions",
	"sessions_reclaim":          "LiftedByTime",
	"sessions_task":             "SessionsOfTask",
	"sessions_thread":           "FitSessions",
	"sessions_trigger":          "SessionByTrigger",
	"signals_pending":           "PendingSignal",
	"signals_worker":            "LastSignal",
	"task_blockers_blocker":     "BlockedBy",
	"task_comments_task":        "TaskComments",
	"tasks_board":               "BoardTasks",
	"tasks_done":                "DoneTasks",
	"tasks_lapse":               "ClampTasks",
	"tasks_later":               "LaterTasks",
	"tasks_leased":              "TasksHeldBy",
	"tasks_list":                "CountTasks",
	"tasks_mine":                "TasksAssigned",
	"tasks_newest":              "TasksBefore",
	"tasks_number":              "NextTaskNumber",
	"tasks_ready":               "ReadyTasks",
	"tasks_slug":                "TaskBySlug",
	"tokens_user":               "RevokeLinksOf",
	"trigger_urls_agent":        "TriggerURLsOfAgent",
	"webhooks_workspace":        "ViewDisabledWebhooks",
	"workers_beat":              "GraceWorkers",
	"workers_name":              "WorkerByName",
	"workers_notices":           "NoticedWorkers",
	"workers_process":           "ClampBeats",
}

// unasked says that an index is no statement's, but holds a rule.
const unasked = "a rule: "

// shapes are what statistics say of files that differ in what they hold most of: SQLite plans
// by them once somebody has run ANALYZE; the product doesn't (docs/performance.md).
var shapes = map[string]string{
	"a new file": "",
	"a million ended sessions": `INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
		('sessions', 'sessions_ended', '937174 2001 1334'), ('sessions', 'sessions_agent', '1091870 2001'), ('sessions', 'sessions_newest', '1007880 2001'),
		('sessions', 'sessions_claimable', '14904 167 167 167 3 1 1'), ('sessions', 'sessions_failed', '19734 2001'), ('sessions', 'sessions_open', '9625 167 134'),
		('sessions', 'sessions_trigger', '1076630 2001 1'), ('claims', 'claims_session', '965885 1'), ('events', 'events_other', '223 45'),
		('events', 'events_session', '4368320 4'), ('events', 'events_agent', '201 1 1'), ('events', NULL, '4016098'), ('users', NULL, '1'), ('agents', 'agents_slug', '200 200 1'),
		('tasks', 'tasks_later', '32984 2001 2001 2001 1'), ('tasks', 'tasks_newest', '87945 2001 1'), ('tasks', 'tasks_done', '39480 2001 1 1'),
		('tasks', 'tasks_board', '92070 2001 2001 2001 1'), ('tasks', 'tasks_mine', '32984 2001 2001 2001 1'), ('tasks', 'tasks_list', '89880 2001 2001 1'),
		('tasks', 'tasks_number', '70794 2001 1')`,
	"a million queued sessions": `INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
		('sessions', 'sessions_agent', '1000000 1000000'), ('sessions', 'sessions_newest', '1000000 1000000'), ('sessions', 'sessions_open', '1000000 1000000 1000000'),
		('sessions', 'sessions_claimable', '1000000 1000000 1000000 1000000 1 1 1'), ('sessions', 'sessions_trigger', '1000000 1000000 1'),
		('events', 'events_session', '1000000 1'), ('events', NULL, '1000000'), ('claims', NULL, '1'), ('users', NULL, '1'), ('agents', 'agents_slug', '1 1 1')`,
}

// aboutAll are statements about all that waits, which go through a whole table when that is most
// of it: once after a clock was set back, and once in a restore, before anybody else is there.
var aboutAll = map[string]bool{"ClampQueued": true, "HoldAfterRestore": true}

// others are the statistics by which SQLite may take another index, as long as it goes through
// no whole table.
var others = map[string]bool{shapes["a million queued sessions"]: true}

// TestEveryStatementHasAnIndex asks SQLite for the plan of every statement. One
// that goes through a table that grows takes seconds at a million rows.
func TestEveryStatementHasAnIndex(t *testing.T) {
	statements := generated(t)
	if len(statements) < 200 {
		t.Fatalf("only %d statements were found", len(statements))
	}
	for shape, statistics := range shapes {
		t.Run(shape, func(t *testing.T) {
			pool := migrated(t, statistics)
			partial := partialIndexes(t, pool)
			plans := map[string]string{}
			for name, text := range statements {
				steps, err := plan(t, pool, text)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				plans[name] = strings.Join(steps, "; ")
				ofGrown := false
				for _, step := range steps {
					ofGrown = ofGrown || goesBy(step, text)
					switch {
					case scans(step, text, partial) && !aboutAll[name]:
						t.Errorf("%s looks through a whole table: %s", name, plans[name])
					case workspaceOnly.MatchString(step) && goesBy(step, text) && wholeWorkspace[name] == "":
						t.Errorf("%s looks through a whole workspace: %s", name, plans[name])
					}
				}
				if ofGrown && strings.Contains(plans[name], "USE TEMP B-TREE") && sorting[name] == "" {
					t.Errorf("%s sorts what may be many: %s", name, plans[name])
				}
			}
			indexes := allIndexes(t, pool)
			for index, name := range needs {
				if !strings.HasPrefix(name, unasked) && !regexp.MustCompile(`INDEX `+index+`\b`).MatchString(plans[name]) && !others[statistics] {
					t.Errorf("%s doesn't go by %s: %s", name, index, plans[name])
				}
				if !slices.Contains(indexes, index) {
					t.Errorf("there is no index %s", index)
				}
			}
			for _, index := range indexes {
				if needs[index] == "" {
					t.Errorf("no statement is named that needs the index %s", index)
				}
			}
		})
	}
	for _, known := range []map[string]string{wholeWorkspace, sorting} {
		for name := range known {
			if _, ok := statements[name]; !ok {
				t.Errorf("%s is no statement any more", name)
			}
		}
	}
}

// migrated is a real file with the whole schema and with statistics.
func migrated(t *testing.T, statistics string) *sql.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stint.db")
	store, err := db.Open(t.Context(), db.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if statistics != "" {
		raw, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range []string{"ANALYZE", "DELETE FROM sqlite_stat1", statistics} {
			if _, err := raw.ExecContext(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}
		if err := raw.Close(); err != nil { // statistics are read when a file is opened
			t.Fatal(err)
		}
	}
	pool, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	return pool
}

func allIndexes(t *testing.T, pool *sql.DB) []string {
	t.Helper()
	return names(t, pool, `SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL`)
}

func names(t *testing.T, pool *sql.DB, query string) (out []string) {
	t.Helper()
	rows, err := pool.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		out = append(out, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// workspaceOnly is a step that an index narrows to a workspace and no further.
var workspaceOnly = regexp.MustCompile(`^SEARCH \w+ USING (?:COVERING )?INDEX \w+ \(workspace_id=\?\)`)

// partialIndexes are the names of the indexes that hold some of their table's rows.
func partialIndexes(t *testing.T, pool *sql.DB) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, name := range names(t, pool, `SELECT name FROM sqlite_schema WHERE type = 'index' AND sql LIKE '% WHERE %'`) {
		all[name] = true
	}
	return all
}

// generated returns the statements in the generated files by their names.
func generated(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.sql.go")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?s)const \\w+ = `-- name: (\\w+) :\\w+\n(.*?)`").FindAllStringSubmatch(string(code), -1) {
			all[m[1]] = m[2]
		}
	}
	return all
}

func plan(t *testing.T, pool *sql.DB, text string) (steps []string, err error) {
	t.Helper()
	args := make([]any, strings.Count(text, "?"))
	rows, err := pool.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args[:highest(text)]...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, rows.Err()
}

// highest is the number of a statement's last argument.
func highest(text string) (n int) {
	for n = 0; strings.Contains(text, "?"+strconv.Itoa(n+1)); n++ {
	}
	return n
}

var (
	scan = regexp.MustCompile(`^SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?`)
	step = regexp.MustCompile(`^(?:SCAN|SEARCH) (\w+)`)
)

// scans reports whether a step of a plan scans a table that grows. A scan of a partial index
// doesn't count: the index holds only the rows that it is about.
func scans(step, text string, partial map[string]bool) bool {
	m := scan.FindStringSubmatch(step)
	return m != nil && !partial[m[2]] && goesBy(step, text)
}

// goesBy reports whether a step reads a table that grows, by its name or by the alias that the
// statement gives it.
func goesBy(of, text string) bool {
	m := step.FindStringSubmatch(of)
	if m == nil {
		return false
	}
	if slices.Contains(grown, m[1]) {
		return true
	}
	for _, table := range grown {
		if regexp.MustCompile(`\b` + table + ` ` + m[1] + `\b`).MatchString(text) {
			return true
		}
	}
	return false
}
