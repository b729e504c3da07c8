package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stint/api"
)

const (
	workerPrefix = "wrk_"
	workersNext  = "stint worker list"
)

// findWorkers finds the workers that a word names: one by its id or the beginning of one, or
// all that have that name, since one process is a worker of the same name for each of its
// agents.
func findWorkers(ctx context.Context, client *api.Client, what, ref, agent string) ([]api.Worker, error) {
	list, err := pages(math.MaxInt32, "", func(p api.Page) (api.List[api.Worker], error) { return workersOf(ctx, client, agent, p) })
	if err != nil {
		return nil, noAgent(ctx, client, what, agent, err)
	}
	word := strings.TrimSpace(ref)
	var found []api.Worker
	for _, w := range list.Items {
		if w.Name == word {
			found = append(found, w)
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	id := strings.ToLower(word)
	if !strings.HasPrefix(id, workerPrefix) {
		id = workerPrefix + id
	}
	var ids []string
	for _, w := range list.Items {
		if len(id) > len(workerPrefix) && strings.HasPrefix(w.ID.String(), id) {
			found, ids = append(found, w), append(ids, w.ID.String())
		}
	}
	if len(found) == 0 {
		return nil, &problem{code: exitNotFound, what: what, why: "no worker that you may see has that name or id", next: workersNext}
	}
	return found, one(what, ids, workersNext)
}

// eachWorker does one thing to every worker named. All are tried; the first failure determines
// the exit code.
func (c *cli) eachWorker(ctx context.Context, verb, agent string, refs []string, do func(context.Context, *api.Client, api.Worker, int) error) error {
	what := "cannot " + verb + " the worker " + refs[0]
	client, err := c.connect(what)
	if err != nil {
		return err
	}
	if agent, err = findAgent(ctx, client, agent); err != nil {
		return err
	}
	var all []api.Worker
	for _, ref := range refs {
		found, err := findWorkers(ctx, client, "cannot "+verb+" the worker "+ref, ref, agent)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	return each(ctx, c, all, func(w api.Worker) error {
		return explain("cannot "+verb+" the worker "+w.ID.String()+" ("+w.Name+" for "+w.AgentSlug+")", do(ctx, client, w, len(all)), workersNext)
	})
}

func (c *cli) workerShowCommand() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use:   "show WORKER",
		Short: "Show a worker, by id or by name",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			before := ""
			return c.eachWorker(cmd.Context(), "show", agent, args, func(ctx context.Context, client *api.Client, w api.Worker, count int) error {
				return c.several(w, w.ID.String(), count, func() error {
					facts := c.workerFacts(w)
					if rules, err := client.Approvals(ctx, w.AgentID, w.ID); err == nil && len(rules.Items) > 0 { // its owner's alone
						facts.add("approvals", fmt.Sprintf("%d from now on: stint worker rules %s", len(rules.Items), w.AgentSlug))
					}
					_, err := io.WriteString(c.out, before)
					before = "\n"
					return errors.Join(err, facts.print(c))
				})
			})
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "only this `AGENT`'s")
	return cmd
}

func (c *cli) workerFacts(w api.Worker) *facts {
	f := &facts{}
	state := string(w.State)
	if c.tty {
		state = c.outLook.worker(w.State)
	}
	f.add("worker", w.ID.String())
	f.add("name", plain(w.Name))
	f.add("agent", w.AgentSlug)
	f.add("state", state)
	f.add("desired", string(w.DesiredState))
	if s := w.PendingSignal; s != nil {
		f.add("pending signal", fmt.Sprintf("%s by %s %s", s.Signal, plain(s.SentByName), c.when(s.SentAt)))
	}
	f.add("mode", string(w.Mode))
	f.add("running", fmt.Sprintf("%d/%d", w.Running, w.MaxConcurrent))
	f.add("types", joined(w.Types))
	f.add("labels", strings.Join(w.Labels, ", "))
	f.add("changes", levelWords[w.Land])
	f.add("task updates", updatesWords(w.TaskUpdates))
	f.add("instructions", opening(w.Instructions))
	f.add("platform", plain(w.Platform))
	f.add("version", plain(w.Version))
	f.add("last beat", c.when(w.LastBeatAt))
	f.add("created", c.when(w.CreatedAt))
	return f
}

// signalWords are what the commands say about their signals.
var signalWords = []struct {
	kind  api.SignalKind
	short string
	told  string
}{
	{api.SignalPause, "Have workers claim nothing new; what runs goes on", "to pause"},
	{api.SignalResume, "Have paused or stopped workers claim again", "to go on"},
	{api.SignalRestart, "Have workers give back what runs and start again", "to restart"},
	{api.SignalStop, "Have workers give back what runs and end", "to stop"},
}

func (c *cli) workerSignalCommands() (all []*cobra.Command) {
	for _, s := range signalWords {
		var agent string
		var wait time.Duration
		cmd := &cobra.Command{
			Use:     string(s.kind) + " WORKER…",
			Short:   s.short,
			Long:    s.short + ", by id or by name.\nThe worker acknowledges the signal when it has done what it says; a newer\nsignal replaces one that is still pending.",
			Example: "stint worker " + string(s.kind) + " workshop\nstint worker " + string(s.kind) + " workshop --agent backup --wait 1m",
			Args:    cobra.MinimumNArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				if wait < 0 {
					return usage("cannot "+string(s.kind)+" a worker", "--wait is not negative", "stint worker "+string(s.kind)+" --help")
				}
				return c.eachWorker(cmd.Context(), string(s.kind), agent, args, func(ctx context.Context, client *api.Client, w api.Worker, count int) error {
					answer, err := client.SignalWorker(ctx, w.AgentID, w.ID, s.kind)
					if err == nil && wait > 0 {
						answer.Worker, err = c.acknowledged(ctx, client, answer.Worker, wait)
					}
					if err != nil {
						return err
					}
					return c.several(answer, w.ID.String(), count, func() error {
						c.hint("%s", signalled(answer, s.told))
						return nil
					})
				})
			},
		}
		cmd.Flags().StringVar(&agent, "agent", "", "only this `AGENT`'s")
		cmd.Flags().DurationVar(&wait, "wait", 0, "wait so long at most until it has acknowledged")
		all = append(all, cmd)
	}
	return all
}

func signalled(a api.SignalAnswer, told string) string {
	w := a.Worker
	text := fmt.Sprintf("%s for %s was told %s", w.Name, w.AgentSlug, told)
	switch {
	case w.PendingSignal == nil:
		return text + " and has acknowledged it."
	case !a.Changed:
		return text + " already, by " + w.PendingSignal.SentByName + ", and has not acknowledged it yet."
	case w.State == api.Offline:
		return text + "; it is offline now."
	}
	return text + "."
}

// acknowledged waits until nothing is pending for a worker any more.
func (c *cli) acknowledged(ctx context.Context, client *api.Client, w api.Worker, wait time.Duration) (api.Worker, error) {
	for end := c.now().Add(wait); w.PendingSignal != nil; {
		left := end.Sub(c.now())
		if left <= 0 {
			return w, &problem{
				code: exitTimeout, what: "the worker " + w.Name + " has not acknowledged the signal " + string(w.PendingSignal.Signal) + " yet",
				next: "stint worker show " + w.ID.String(),
			}
		}
		var err error
		w, err = client.AwaitSignal(ctx, w.AgentID, w.ID, "", w.PendingSignal.ID, min(left+time.Second, time.Minute))
		if err != nil {
			return w, err
		}
	}
	return w, nil
}

func (c *cli) workerForgetCommand() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use:   "forget WORKER…",
		Short: "Delete workers' records, by id or by name",
		Long: "Deletes workers' records, by id or by name. What they run is taken from them at\n" +
			"once. A process that is forgotten makes no new record unless it is started with\n" +
			"--register.",
		Example: "stint worker forget wrk_02r3v0n8e2",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.eachWorker(cmd.Context(), "forget", agent, args, func(ctx context.Context, client *api.Client, w api.Worker, count int) error {
				if err := client.DeleteWorker(ctx, w.AgentID, w.ID); err != nil {
					return err
				}
				return c.several(w, w.ID.String(), count, func() error {
					c.hint("Forgot the worker %s for %s.", w.Name, w.AgentSlug)
					return nil
				})
			})
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "only this `AGENT`'s")
	return cmd
}
