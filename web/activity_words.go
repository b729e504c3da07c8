package web

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"stint/api"
)

// phrase describes an event: the actor, the verb, what it was done to, and the rest.
type phrase struct {
	verb  string
	of    string // session, agent, task or nothing
	after string
}

// phrases are the events that are shown as sentences; the others are shown by their type and
// data.
var phrases = map[string]phrase{
	"session_created":                     {"started", "session", ""},
	"session_queued":                      {"queued", "session", ""},
	"session_claimed":                     {"took up", "session", ""},
	"session_released":                    {"gave back", "session", ""},
	"session_stale":                       {"found the worker lost of", "session", ""},
	"session_complete":                    {"completed", "session", ""},
	"session_error":                       {"ended", "session", "in error"},
	"session_cancelled":                   {"cancelled", "session", ""},
	"session_archived":                    {"archived", "session", ""},
	"session_kept":                        {"kept", "session", ""},
	"session_let_go":                      {"let go of", "session", ""},
	"session_awaiting_input":              {"asked something in", "session", ""},
	"activity":                            {"reported on", "session", ""},
	"session_reported":                    {"sent news of", "session", ""},
	"session_resumed":                     {"went on with", "session", ""},
	"stop_requested":                      {"asked", "session", "to stop"},
	"message_posted":                      {"wrote to", "session", ""},
	"prompt_closed":                       {"closed the question of", "session", ""},
	"lease_extended":                      {"extended the lease of", "session", ""},
	"changes_recorded":                    {"recorded the changes of", "session", ""},
	"landing_requested":                   {"asked what to do with the changes of", "session", ""},
	"landing_done":                        {"did as asked with the changes of", "session", ""},
	"landing_refused":                     {"did nothing yet with the changes of", "session", ""},
	"landing_withdrawn":                   {"took back a request about the changes of", "session", ""},
	"agent_created":                       {"made the agent", "agent", ""},
	"agent_edited":                        {"changed the agent", "agent", ""},
	"agent_paused":                        {"paused the agent", "agent", ""},
	"agent_resumed":                       {"resumed the agent", "agent", ""},
	"slots_skipped":                       {"had slots skipped of", "agent", "until"},
	"slots_kept":                          {"took back that slots are skipped of", "agent", ""},
	"agent_deleted":                       {"deleted the agent", "agent", ""},
	"finding_opened":                      {"found something wrong", "agent", ""},
	"finding_closed":                      {"saw the end of something wrong", "agent", ""},
	"trigger_url_opened":                  {"opened a trigger URL of", "agent", ""},
	"trigger_url_closed":                  {"closed a trigger URL of", "agent", ""},
	"worker_registered":                   {"registered a worker for", "agent", ""},
	"worker_online":                       {"came online for", "agent", ""},
	"worker_offline":                      {"went offline for", "agent", ""},
	"worker_edited":                       {"changed a worker of", "agent", ""},
	"worker_deleted":                      {"removed a worker of", "agent", ""},
	"signal_sent":                         {"sent a signal to a worker of", "agent", ""},
	"signal_acknowledged":                 {"acknowledged a signal, serving", "agent", ""},
	"standing_approval_given":             {"was allowed something from now on, serving", "agent", ""},
	"standing_approval_removal_requested": {"asked to remove a standing approval of", "agent", ""},
	"standing_approval_removed":           {"removed a standing approval of", "agent", ""},
	"task_created":                        {"made", "task", ""},
	"task_edited":                         {"changed", "task", ""},
	"task_moved":                          {"moved", "task", ""},
	"task_commented":                      {"commented on", "task", ""},
	"task_claimed":                        {"claimed", "task", ""},
	"task_lease_extended":                 {"extended the lease on", "task", ""},
	"task_released":                       {"released", "task", ""},
	"task_lapsed":                         {"saw the lease run out on", "task", ""},
	"task_dispatched":                     {"dispatched an agent on", "task", ""},
	"workspace_created":                   {"made this workspace", "", ""},
	"workspace_renamed":                   {"renamed this workspace", "", ""},
	"member_invited":                      {"invited somebody", "", ""},
	"member_joined":                       {"joined", "", ""},
	"member_role_changed":                 {"changed a member's role", "", ""},
	"member_removed":                      {"removed a member", "", ""},
	"invitation_revoked":                  {"revoked an invitation", "", ""},
	"key_created":                         {"made an API key", "", ""},
	"key_revoked":                         {"revoked an API key", "", ""},
	"signed_in":                           {"signed in", "", ""},
	"identity_linked":                     {"linked an account", "", ""},
	"identity_unlinked":                   {"unlinked an account", "", ""},
	"program_signed_in":                   {"signed a program in", "", ""},
	"program_signed_out":                  {"signed a program out", "", ""},
	"channel_created":                     {"made a channel", "", ""},
	"channel_edited":                      {"changed a channel", "", ""},
	"channel_disabled":                    {"disabled a channel", "", ""},
	"channel_deleted":                     {"removed a channel", "", ""},
	"webhook_created":                     {"made a webhook", "", ""},
	"webhook_edited":                      {"changed a webhook", "", ""},
	"webhook_rotated":                     {"gave a webhook a new secret", "", ""},
	"webhook_disabled":                    {"disabled a webhook", "", ""},
	"webhook_deleted":                     {"deleted a webhook", "", ""},
	"worker_stale":                        {"heard nothing for a while from a worker of", "agent", ""},
	"schedule_error":                      {"can't read the schedule of", "agent", ""},
	"backup_made":                         {"made a backup", "", ""},
	"backup_failed":                       {"couldn't make a backup", "", ""},
	"backup_restored":                     {"came back from a backup", "", ""},
	"retention_pruned":                    {"removed what is old", "", ""},
	"coordinator_outage":                  {"was away", "", ""},
	"clock_set_back":                      {"found the clock set back", "", ""},
	"program_revoked":                     {"revoked a program", "", ""},
}

// slotVerbs say what became of a slot, by its verdict.
var slotVerbs = map[api.Verdict]string{
	api.SlotFired: "fired", api.SlotFolded: "folded", api.SlotSkipped: "skipped", api.SlotMissed: "missed", api.SlotPaused: "left out, as it is paused,",
}

// slotPhrase is the sentence of a slot's verdict.
func slotPhrase(e api.AuditEntry) (phrase, bool) {
	verb, ok := slotVerbs[api.Verdict(dataText(e, "verdict"))]
	if n, _ := e.Data["count"].(float64); n > 1 {
		return phrase{fmt.Sprintf("%s %d slots of", verb, int(n)), "agent", ""}, ok
	}
	return phrase{verb + " a slot of", "agent", ""}, ok
}

// facts are what the sentence of an entry doesn't say.
func (p activityPage) facts(e api.AuditEntry) string {
	switch e.Type {
	case api.EventSlotDecided:
	case api.EventChangesRecorded:
		return recordedWords(e.Event)
	case api.EventReported:
		return newsOf(e)
	default:
		return factsOf(e)
	}
	slot, err := time.Parse(time.RFC3339, dataText(e, "slot"))
	if err != nil {
		return factsOf(e)
	}
	return "due " + slot.In(p.zone).Format("2 Jan 15:04:05")
}

// news are the words for what a worker tells of a session in between.
var news = map[string]string{
	"agentSessionId": "the program's own session", "workPath": "where it works", "resumeCommand": "how to go on with it by hand",
	"externalUrl": "its address", "plan": "its plan", "taken": "messages were taken", "turnEnded": "a turn ended", "tries": "it is tried again", "usage": "usage",
}

func newsOf(e api.AuditEntry) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(e.Data)) {
		out = append(out, cmp.Or(news[key], key))
	}
	return strings.Join(out, ", ")
}

// phraseOf finds the sentence of an entry. An entry that lacks something its sentence mentions
// has none.
func phraseOf(e api.AuditEntry) (phrase, bool) {
	p, ok := phrases[e.Type]
	if e.Type == api.EventSlotDecided {
		p, ok = slotPhrase(e)
	}
	switch {
	case p.of == "session" && e.SessionID == 0, p.of == "agent" && e.AgentID == 0, p.of == "task" && dataText(e, "key") == "":
		return phrase{}, false
	}
	return p, ok
}

// doer names who did it, at the beginning of a sentence.
func doer(e api.AuditEntry) string {
	name := e.ActorName
	switch {
	case e.Actor == "system":
		return "Stint"
	case e.Actor == "scheduler":
		return "The schedule"
	case strings.HasPrefix(e.Actor, "ses_") && name == e.Actor:
		return "A run"
	case strings.HasPrefix(name, "worker worker"): // a worker that nobody has named
		name = strings.TrimPrefix(name, "worker ")
	}
	return cmp.Or(capitalised(name), e.Actor)
}

// plainFacts are names that the sentence has already mentioned, or that mean nothing to a
// reader.
var plainFacts = []string{"version", "fence", "prompt", "thread", "id", "key", "invitation", "trigger", "signIn", "message", "identity", "knownName", "worker", "landing"}

// factsOf puts the rest of an event's data into words.
func factsOf(e api.AuditEntry) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(e.Data)) {
		moved := (key == "from" || key == "to") && e.SessionID != 0
		if moved || slices.Contains(plainFacts, key) {
			continue
		}
		text, ok := e.Data[key].(string)
		if !ok {
			line, err := json.Marshal(e.Data[key], json.Deterministic(true))
			if err != nil {
				continue
			}
			text = string(line)
		}
		text = cmp.Or(reasons[text], landCodes[text], text)
		if text == "" || key == "outcome" && text == api.OutcomeSuccess || key == "type" && text == "progress" {
			continue // as the sentence says already
		}
		if key == "reason" || key == "code" {
			out = append(out, text)
		} else {
			out = append(out, fmt.Sprintf("%s: %s", key, text))
		}
	}
	return strings.Join(out, ", ")
}
