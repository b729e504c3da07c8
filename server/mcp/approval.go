package mcp

import (
	"context"
	"net/http"
	"net/url"

	jsonv2 "github.com/go-json-experiment/json"

	"stint/api"
)

// guard refuses a call that a tool may not make, for what the operation itself doesn't know: that
// a program asks. The arguments are not checked yet.
type guard func(ctx context.Context, c Caller, args arguments) error

// noApproval refuses to answer an approval, whatever the caller's rights are: a program
// approves nothing (contract 6.5). A prompt never changes its kind.
func noApproval(ctx context.Context, c Caller, args arguments) error {
	session, prompt := args.text("session"), args.text("promptId")
	_, approves := args["approved"]
	_, always := args["forSession"]
	_, stands := args["standing"]
	if !approves && !always && !stands {
		if session == "" || prompt == "" {
			return nil // which the schema refuses
		}
		b, err := c.Client.Raw(ctx, api.RawCall{
			Method: http.MethodGet,
			Path:   "/api/v1/workspaces/" + url.PathEscape(c.Client.Workspace()) + "/sessions/" + url.PathEscape(session) + "/prompts/" + url.PathEscape(prompt),
		})
		if err != nil {
			return err
		}
		var p api.Prompt
		if err := jsonv2.Unmarshal(b, &p); err != nil {
			return err
		}
		if p.Kind != api.PromptApproval || p.Resolution != "" {
			return nil
		}
	}
	return &Failure{
		Code: string(api.CodeUserTokenRequired), Detail: "A program approves nothing: only a person gives or refuses an approval.",
		Next: "Ask a person to decide at " + c.Pages + "/sessions/" + url.PathEscape(session) + ", and wait with wait_session.",
	}
}
