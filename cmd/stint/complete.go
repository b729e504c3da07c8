package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stint/api"
	"stint/scheduler"
)

// completionTime bounds how long a shell waits for its suggestions.
const completionTime = 2 * time.Second

// completeArgs lets the shell complete the arguments that commands name in
// their usage: AGENT by slug, SESSION by id, TASK by key.
func (c *cli) completeArgs(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		c.completeArgs(sub)
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { c.completeValue(cmd, f) })
	switch {
	case cmd.ValidArgsFunction != nil || !cmd.Runnable():
	case strings.Contains(cmd.Use, "TASK…"):
		cmd.ValidArgsFunction = c.suggest(0, taskWords)
	case strings.Contains(cmd.Use, "TASK"):
		cmd.ValidArgsFunction = c.suggest(1, taskWords)
	case strings.Contains(cmd.Use, "AGENT"):
		cmd.ValidArgsFunction = c.suggest(1, agentWords)
	case strings.Contains(cmd.Use, "SESSION…"):
		cmd.ValidArgsFunction = c.suggest(0, sessionWords)
	case strings.Contains(cmd.Use, "SESSION"):
		cmd.ValidArgsFunction = c.suggest(1, sessionWords)
	default:
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
}

// completeValue lets the shell complete the value of a flag, by what the usage calls it or by the
// flag's name, where the command itself says nothing. Files are offered for files alone.
func (c *cli) completeValue(cmd *cobra.Command, f *pflag.Flag) {
	if _, set := cmd.GetFlagCompletionFunc(f.Name); set {
		return
	}
	placeholder, _ := pflag.UnquoteUsage(f)
	switch {
	case placeholder == "AGENT":
		c.completeFlag(cmd, f.Name, agentWords)
	case placeholder == "SESSION":
		c.completeFlag(cmd, f.Name, sessionWords)
	case placeholder == "TASK":
		c.completeFlag(cmd, f.Name, taskWords)
	case placeholder == "WORKSPACE":
		c.completeFlag(cmd, f.Name, workspaceWords)
	case placeholder == "ZONE":
		completeWords(cmd, f.Name, scheduler.Zones())
	case placeholder == "STATUSES":
		completeWords(cmd, f.Name, api.Statuses)
	case f.Name == "preset":
		completeWords(cmd, f.Name, presetNames())
	case f.Name == "type" && placeholder == "TYPE" && cmd.Name() != "audit":
		types := make([]api.AgentType, len(api.AgentTypes))
		for i, t := range api.AgentTypes {
			types[i] = t.Type
		}
		completeWords(cmd, f.Name, types)
	case f.Name == "overlap":
		completeWords(cmd, f.Name, []api.Overlap{api.OverlapSkip, api.OverlapQueueOne, api.OverlapAllow, api.OverlapReplace})
	case f.Name == "color":
		completeWords(cmd, f.Name, []string{colorAuto, "always", "never"})
	case !slices.Contains([]string{"FILE", "DIR", "PATH"}, placeholder):
		flagValues(cmd, f.Name, cobra.NoFileCompletions)
	}
}

func presetNames() []string {
	var names []string
	for _, p := range api.Presets() {
		names = append(names, p.Name+"\t"+p.Title)
	}
	return names
}

func workspaceWords(ctx context.Context, client *api.Client) []string {
	list, err := client.Workspaces(ctx)
	if err != nil {
		return nil
	}
	words := make([]string, len(list.Items))
	for i, w := range list.Items {
		words[i] = w.Slug + "\t" + firstLine(w.Name)
	}
	return words
}

// suggest completes up to most arguments (0 = any number) with words that the coordinator
// knows. Without a coordinator there is nothing to suggest.
func (c *cli) suggest(most int, words func(context.Context, *api.Client) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		client, err := c.connect("")
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completionTime)
		defer cancel()
		var fit []string
		for _, w := range words(ctx, client) {
			if strings.HasPrefix(w, begun) {
				fit = append(fit, w)
			}
		}
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

func agentWords(ctx context.Context, client *api.Client) []string {
	list, err := client.Agents(ctx, api.Page{Limit: pageSize})
	if err != nil {
		return nil
	}
	words := make([]string, len(list.Items))
	for i, a := range list.Items {
		words[i] = a.Slug + "\t" + firstLine(a.Description)
	}
	return words
}

func sessionWords(ctx context.Context, client *api.Client) []string {
	list, err := client.Sessions(ctx, api.SessionFilter{}, api.Page{})
	if err != nil {
		return nil
	}
	words := make([]string, len(list.Items))
	for i, s := range list.Items {
		words[i] = s.ID.String() + "\t" + s.AgentSlug + " " + string(s.Status)
	}
	return words
}

func taskWords(ctx context.Context, client *api.Client) []string {
	list, err := client.Tasks(ctx, api.TaskFilter{}, api.Page{})
	if err != nil {
		return nil
	}
	words := make([]string, len(list.Items))
	for i, t := range list.Items {
		words[i] = t.Key + "\t" + firstLine(t.Title)
	}
	return words
}

// assigneeWords are whom a task may be assigned to.
func assigneeWords(ctx context.Context, client *api.Client) []string {
	words := append([]string{"me", "none"}, agentWords(ctx, client)...)
	list, err := client.Members(ctx, api.Page{Limit: pageSize})
	if err != nil {
		return words
	}
	for _, m := range list.Items {
		words = append(words, m.UserID.String()+"\t"+firstLine(m.Name))
	}
	return words
}

// completeFlag lets the shell complete the value of a flag with words that the coordinator
// knows.
func (c *cli) completeFlag(cmd *cobra.Command, flag string, words func(context.Context, *api.Client) []string) {
	flagValues(cmd, flag, c.suggest(0, words))
}

// completeWords lets the shell complete the value of a flag with one of a few words.
func completeWords[W ~string](cmd *cobra.Command, flag string, words []W) {
	fixed := make([]string, len(words))
	for i, w := range words {
		fixed[i] = string(w)
	}
	flagValues(cmd, flag, cobra.FixedCompletions(fixed, cobra.ShellCompDirectiveNoFileComp))
}

func flagValues(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) // the command has no such flag
	}
}
