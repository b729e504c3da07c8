package mcp

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"stint/api"
)

// The resource of a session's output.
const (
	outputPrefix = "stint://sessions/"
	outputSuffix = "/output"
	outputMost   = 256 << 10 // bytes; what follows is read with read_output
)

var outputTemplate = &sdk.ResourceTemplate{
	Name: "session_output", Title: "Output of a session", URITemplate: outputPrefix + "{session}" + outputSuffix, MIMEType: "text/plain",
	Description: "What a session's agent said and printed, as text: its first 256 KiB. The tool read_output goes on from there.",
}

// readOutput reads the resource of a session's output.
func (o *Options) readOutput(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	uri := r.Params.URI
	b, err := o.guarded(outputTemplate.Name, func() ([]byte, error) { return o.outputOf(ctx, uri) })
	if api.CodeOf(err) == api.CodeNotFound {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: words(err)}
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: outputTemplate.MIMEType, Text: string(b)}}}, nil
}

func (o *Options) outputOf(ctx context.Context, uri string) ([]byte, error) {
	var id api.SessionID
	name := strings.TrimSuffix(strings.TrimPrefix(uri, outputPrefix), outputSuffix)
	if id.UnmarshalText([]byte(name)) != nil || id == 0 {
		return nil, api.Refuse(api.CodeNotFound, "There is no such session.")
	}
	caller, err := o.Caller(ctx)
	if err == nil {
		err = caller.may(ScopeRead)
	}
	if err != nil {
		return nil, err
	}
	var all strings.Builder
	for cursor := ""; ; {
		part, err := caller.Client.Output(ctx, id, cursor)
		if err != nil {
			return nil, err
		}
		all.WriteString(part.Text)
		if cursor = part.Cursor; !part.More {
			return []byte(all.String()), nil
		}
		if all.Len() >= outputMost {
			all.WriteString("\n… the rest: read_output with the cursor " + cursor)
			return []byte(all.String()), nil
		}
	}
}
