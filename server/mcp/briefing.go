package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

var briefingResource = resource{
	template: &sdk.ResourceTemplate{
		Name: "task_briefing", Title: "Briefing of a task", URITemplate: "stint://tasks/{task}/briefing", MIMEType: "text/markdown",
		Description: "What an agent is told of a task, named by its number such as T-42, its slug or its id: title, description, links, comments and recent activity.",
	},
	read: briefingOf,
}

func briefingOf(ctx context.Context, c Caller, task string) (string, error) {
	b, err := c.Client.TaskBriefing(ctx, task)
	return b.Text, err
}
