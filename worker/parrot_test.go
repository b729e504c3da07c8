package worker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/agent/cmdline"
)

// parrot is an adapter to the play chat: it does what lines of its turns that begin
// with an exclamation mark say, wherever they stand.
//
//	!say TEXT   the program says it    !ask TEXT   asks for approval
//	!secret TEXT   asks for a secret
//	!cost N     has cost N, and as many tokens, in all
//	!take N     takes in what people say to the turn, N times, and does it
//	!drop       is given it, and its taking in doesn't show
//	!hang       until it is cut short
//	!die        the program ends       !limit      a usage limit that ends in an hour
//	!deny       a refusal by policy    !plan TEXT
type parrot struct{ self, file string }

func (p parrot) Command(agent.Job) (agent.Command, error) {
	return agent.Command{Argv: []string{p.self, "workertest-agent", "chat", p.file}, Files: map[string]string{"settings": "quiet"}}, nil
}

func (parrot) Held() []agent.Hold { return nil }

func (p parrot) Converse(ctx context.Context, pipes agent.Pipes, job agent.Job, host agent.Host) (agent.Result, error) {
	id := job.Session
	if _, err := os.Stat(p.file + ".lost"); err == nil && id != "" { // as when its transcripts were removed
		_ = os.Remove(p.file + ".lost")
		return agent.Result{Unknown: true, Failure: refuse(agent.CodeCrashed, "The program does not know the agent session %s.", id)}, nil
	}
	if id == "" {
		id = job.Begin
	}
	if err := host.Began(id); err != nil {
		return agent.Result{}, err
	}
	heard := make(chan string)
	go func() {
		defer close(heard)
		lines := bufio.NewScanner(pipes.Out)
		for lines.Scan() {
			heard <- lines.Text()
		}
	}()
	defer func() {
		go func() {
			for range heard {
			}
		}()
	}()
	words := ""
	var running []string
	said := agent.Said{Text: job.Turn, Files: job.Files}
	for more := true; more; said, more = host.Next(ctx, words) {
		turn := said.Text
		for _, f := range said.Files {
			b, err := os.ReadFile(f.Path)
			host.Item(agent.Item{Kind: api.ItemText, Text: fmt.Sprintf("%s %s %s %v", f.Name, f.Type, b, err)})
		}
		if job.Session != "" && strings.Contains(turn, " already while you worked") {
			host.Item(agent.Item{Kind: api.ItemText, Text: parrotLabels(turn)})
		}
		todo := slices.Collect(strings.Lines(turn))
		for len(todo) > 0 {
			line := todo[0]
			todo = todo[1:]
			do, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch do {
			case "!say", "!die":
				text := rest
				if do == "!die" {
					text = "die"
				}
				if _, err := io.WriteString(pipes.In, text+"\n"); err != nil {
					return agent.Result{Failure: refuse(agent.CodeCrashed, "The program is gone.")}, nil
				}
				select {
				case said, ok := <-heard:
					if !ok {
						return agent.Result{Text: words, Failure: refuse(agent.CodeCrashed, "The program is gone."), Retriable: true}, nil
					}
					words = said
					host.Item(agent.Item{Kind: api.ItemToolCall, Tool: "Echo", CallID: said, Text: said})
					host.Item(agent.Item{Kind: api.ItemToolResult, Tool: "Echo", CallID: said, Text: said})
					host.Item(agent.Item{Kind: api.ItemText, Text: said})
				case <-ctx.Done():
					return agent.Result{Text: words}, context.Cause(ctx)
				}
			case "!ask":
				act := agent.Action{Area: agent.Shell, What: rest, Tool: "Bash"}
				call := agent.Standing{Area: agent.Shell, What: rest, Tool: "Bash"}
				all := job.Approvals.All()
				if i := slices.IndexFunc(all, func(s agent.Standing) bool { return s.Covers(call) }); i >= 0 {
					job.Approvals.Used(act, all[i])
					words = "unasked"
					host.Item(agent.Item{Kind: api.ItemText, Text: words})
					continue
				}
				proposed := []agent.Standing{call, {Area: agent.Shell, What: cmdline.Pattern(rest), Tool: "Bash", Any: true}}
				a, err := host.Ask(ctx, agent.Question{Kind: agent.AskApproval, Text: rest, Action: act, Standing: proposed})
				if errors.Is(err, agent.ErrStopped) {
					continue // it was refused; the turn goes on to its end
				}
				if err != nil {
					return agent.Result{Text: words}, err
				}
				words = fmt.Sprintf("approved %v %s", a.Approved, a.Text)
				host.Item(agent.Item{Kind: api.ItemText, Text: words})
			case "!secret":
				a, err := host.Ask(ctx, agent.Question{Kind: agent.AskQuestions, Text: rest, Choices: []agent.Choice{{ID: rest, Text: rest, Secret: true}}})
				if err != nil {
					return agent.Result{Text: words}, err
				}
				words = fmt.Sprintf("it has %d bytes", len(a.Choices[rest]))
				host.Item(agent.Item{Kind: api.ItemText, Text: words})
			case "!take":
				if n, _ := strconv.Atoi(rest); n > 1 {
					todo = append([]string{fmt.Sprintf("!take %d", n-1)}, todo...)
				}
				said, err := urgent(ctx, host)
				if err != nil {
					return agent.Result{Text: words}, err
				}
				host.Took(said.ID, true)
				todo = append(slices.Collect(strings.Lines(said.Text)), todo...)
			case "!drop":
				if _, err := urgent(ctx, host); err != nil {
					return agent.Result{Text: words}, err
				}
				host.Item(agent.Item{Kind: api.ItemText, Text: "dropped"})
			case "!cost":
				n, _ := strconv.ParseInt(rest, 10, 64)
				host.Usage(api.Usage{CostMicros: n, OutputTokens: n, Turns: 1})
			case "!running":
				running = append(running, rest)
			case "!plan":
				host.Plan("- [ ] " + rest)
			case "!deny":
				host.Denied(agent.Action{Area: agent.SideEffects, What: rest, Tool: "Bash"}, agent.DenyStop)
				return agent.Result{Failure: refuse(agent.CodePolicy, "Not allowed: %s.", rest)}, nil
			case "!refuse":
				host.Denied(agent.Action{Area: agent.SideEffects, What: rest, Tool: "Bash"}, agent.Deny)
			case "!toolless":
				host.ToolsFailed(rest)
			case "!limit":
				return agent.Result{ResetAt: time.Now().Add(time.Hour), Failure: refuse(agent.CodeUsageLimit, "Limit reached.")}, nil
			case "!hang":
				<-ctx.Done()
				return agent.Result{Text: words}, context.Cause(ctx)
			}
		}
	}
	return agent.Result{Text: words, Running: running}, nil
}

// urgent waits for what people say to the running turn.
func urgent(ctx context.Context, host agent.Host) (agent.Said, error) {
	for {
		if said, some := host.Urgent(); some {
			return said, nil
		}
		select {
		case <-host.Urged():
		case <-ctx.Done():
			return agent.Said{}, context.Cause(ctx)
		}
	}
}

// parrotLabels are what the labels of a turn's messages say of those that the agent may have had.
func parrotLabels(turn string) string {
	var out []string
	for line := range strings.Lines(turn) {
		if _, label, is := strings.Cut(line, " begin message of "); is && strings.Contains(label, "already") {
			_, label, _ = strings.Cut(label, ", which ")
			out = append(out, strings.TrimSpace(label))
		}
	}
	return strings.Join(out, "; ")
}
