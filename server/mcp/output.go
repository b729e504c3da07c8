package mcp

import (
	"context"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"stint/api"
)

const outputMost = 256 << 10 // bytes; what follows is read with read_output

var outputResource = resource{
	template: &sdk.ResourceTemplate{
		Name: "session_output", Title: "Output of a session", URITemplate: "stint://sessions/{session}/output", MIMEType: "text/plain",
		Description: "What a session's agent said and printed, as text: its first 256 KiB. The tool read_output goes on from there.",
	},
	read: outputOf,
}

func outputOf(ctx context.Context, c Caller, session string) (string, error) {
	var id api.SessionID
	if id.UnmarshalText([]byte(session)) != nil || id == 0 {
		return "", api.Refuse(api.CodeNotFound, "There is no such session.")
	}
	var all strings.Builder
	for cursor := ""; ; {
		part, err := c.Client.Output(ctx, id, cursor)
		if err != nil {
			return "", err
		}
		all.WriteString(part.Text)
		if cursor = part.Cursor; !part.More {
			return all.String(), nil
		}
		if all.Len() >= outputMost {
			all.WriteString("\n… the rest: read_output with the cursor " + cursor)
			return all.String(), nil
		}
	}
}
