package arrivals

import (
	"strings"
	"testing"
)

func TestClaude_ScheduledTasksOfAProject(t *testing.T) {
	jobs, err := Claude(units(".claude/scheduled_tasks.json", `{"tasks": [
		{"id": "a", "cron": "0 9 * * 1-5", "prompt": "summarize yesterday's merged PRs", "createdAt": 1792861589840, "recurring": true},
		{"id": "b", "cron": "*/15 * * * *", "prompt": "check the deploy", "recurring": true, "permanent": true},
		{"id": "c", "cron": "30 14 28 2 *", "prompt": "remind me", "createdAt": 1},
		{"id": "d", "cron": "9 o'clock", "prompt": "x", "recurring": true},
		{"id": "e", "cron": "0 9 * * *", "recurring": true}
	]}`), "/home/ann/src", here)
	if err != nil || len(jobs) != 5 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	a := jobs[0].Agent
	if a.Slug != "summarize-yesterday-s-merged-prs" || a.Type != "claude_code" || a.Prompt != "summarize yesterday's merged PRs" || a.WorkFolder != "/home/ann/src" ||
		a.Schedule != "0 9 * * 1-5" || a.TimeZone != "UTC" || a.Command != nil || !strings.Contains(strings.Join(jobs[0].Notes, " "), "forgets it") {
		t.Errorf("%+v, %q", a, jobs[0].Notes)
	}
	if strings.Contains(strings.Join(jobs[1].Notes, " "), "forgets it") {
		t.Errorf("what stays for good is said to be forgotten: %q", jobs[1].Notes)
	}
	for i, reason := range []string{"runs once", "five fields", "no prompt"} {
		if !strings.Contains(jobs[2+i].Refused, reason) {
			t.Errorf("%+v is refused by %q", jobs[2+i], jobs[2+i].Refused)
		}
	}
	if _, err := Claude(units(".claude/scheduled_tasks.json", "{"), "/x", here); err == nil {
		t.Error("a file that is no JSON is read")
	}
	if jobs, err := Claude(units(), "/x", here); err != nil || len(jobs) != 0 {
		t.Errorf("%+v, %v", jobs, err)
	}
}

func TestClaude_TasksOfTheDesktopProgram(t *testing.T) {
	jobs, err := Claude(units(
		".claude/scheduled-tasks/Daily review/SKILL.md", "---\nname: daily-review\ndescription: Reviews what came in\n---\n\nReview the commits\nof today.\n",
		".claude/scheduled-tasks/plain/SKILL.md", "Just do it.\n",
		".claude/scheduled-tasks/empty/SKILL.md", "---\nname: empty\n---\n",
		".claude/scheduled-tasks/torn/SKILL.md", "---\nname: torn\n",
	), "/x", here)
	if err != nil || len(jobs) != 4 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	if a := jobs[0].Agent; a.Slug != "daily-review" || a.Name != "Reviews what came in" || a.Prompt != "Review the commits\nof today." || a.Schedule != "" || len(jobs[0].Notes) == 0 {
		t.Errorf("%+v", jobs[0])
	}
	if !strings.Contains(jobs[1].Refused, "no prompt") || jobs[2].Agent.Prompt != "Just do it." || !strings.Contains(jobs[3].Refused, "can't be read") {
		t.Errorf("%+v", jobs[1:])
	}
}
