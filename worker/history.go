package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stint/api"
)

const (
	historyBytes    = 24 << 10 // of what was said so far, for a new agent session
	historyItem     = 2 << 10  // … of one thing that was said
	historyTool     = 200      // … of a tool call
	historySessions = 20       // … of the newest sessions of the thread
	historyItems    = 200      // … and the end of each
)

// saidSoFar returns what was said in the session's thread until now, oldest first and cut at
// its beginning: what a new agent session is given when the one before is gone (contract 2.6).
// It waits for a coordinator that can't be reached; an error is the cause for which the
// session ends meanwhile.
func (s *session) saidSoFar(ctx context.Context) (string, error) {
	var wait backoff
	for {
		said, err := s.history(ctx)
		if err == nil {
			return said, nil
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		s.log.Warn("what was said so far can't be read", "error", err)
		if refusedForGood(err) {
			return "", nil
		}
		if !sleep(ctx, wait.next(api.RetryAfter(err)), s.retry) {
			return "", context.Cause(ctx)
		}
	}
}

// history collects what fits, from the newest on.
func (s *session) history(ctx context.Context) (string, error) {
	sessions, err := s.p.client.Sessions(ctx, api.SessionFilter{ThreadID: s.thread, Archived: true}, api.Page{Limit: historySessions})
	if err != nil {
		return "", err
	}
	var parts []string // newest first
	left := historyBytes
	add := func(text string) bool {
		if left -= len(text) + 1; left < 0 {
			parts = append(parts, "(What was said before that is left out.)")
			return false
		}
		parts = append(parts, text)
		return true
	}
	for _, one := range sessions.Items {
		page, err := s.p.client.ItemsBefore(ctx, one.ID, 0, historyItems)
		if err != nil && api.CodeOf(err) != api.CodeGone { // of what was removed there is only the prompt
			return "", err
		}
		slices.SortFunc(page.Items, func(a, b api.Item) int { return int(b.Seq - a.Seq) })
		for _, it := range page.Items {
			if text := saidIn(it); text != "" && !add(text) {
				return joinedBackwards(parts), nil
			}
		}
		// The new agent session gets this session's prompt anyway.
		if one.ID != s.addr.Session && one.Prompt != "" && !add("Asked: "+api.Excerpt(one.Prompt, historyItem)) {
			break
		}
	}
	return joinedBackwards(parts), nil
}

func joinedBackwards(parts []string) string {
	slices.Reverse(parts)
	return strings.Join(parts, "\n")
}

// saidIn is a line of a transcript as a new agent session gets it, "" for what can be left
// out.
func saidIn(it api.Item) string {
	text := api.Excerpt(strings.TrimSpace(it.Text), historyItem)
	switch it.Kind {
	case api.ItemText:
		return prefixed("Agent: ", text)
	case api.ItemMessage:
		return prefixed("Person: ", text)
	case api.ItemPrompt:
		return prefixed("Agent asked: ", text)
	case api.ItemPromptResolved:
		return prefixed("Answer: ", text)
	case api.ItemLateResult:
		return prefixed("A result that came late: ", text)
	case api.ItemToolCall:
		return fmt.Sprintf("Agent used %s: %s", it.Tool, api.Excerpt(oneLine(it.Text), historyTool))
	}
	return ""
}

func prefixed(label, text string) string {
	if text == "" {
		return ""
	}
	return label + text
}
