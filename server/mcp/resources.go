package mcp

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"stint/api"
)

// resource is a text that programs read by its address. The address is the template's, with the
// name of what it is about in place of the braces.
type resource struct {
	template *sdk.ResourceTemplate
	read     func(ctx context.Context, c Caller, name string) (string, error)
}

var resources = []resource{outputResource, briefingResource}

// named is the name in an address of the resource, which the template matches.
func (r *resource) named(uri string) string {
	before, rest, _ := strings.Cut(r.template.URITemplate, "{")
	_, after, _ := strings.Cut(rest, "}")
	name := strings.TrimSuffix(strings.TrimPrefix(uri, before), after)
	if plain, err := url.PathUnescape(name); err == nil {
		return plain
	}
	return name
}

// handler reads the resource for its caller. What a caller may not see is not found, as with the
// tools.
func (o *Options) handler(r *resource) sdk.ResourceHandler {
	return func(ctx context.Context, in *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		uri := in.Params.URI
		text, err := o.guarded(r.template.Name, func() ([]byte, error) {
			caller, err := o.Caller(ctx)
			if err != nil {
				return nil, err
			}
			if err := caller.May(readScope); err != nil {
				return nil, err
			}
			text, err := r.read(ctx, caller, r.named(uri))
			return []byte(text), err
		})
		if err != nil {
			return nil, unread(uri, err)
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: r.template.MIMEType, Text: string(text)}}}, nil
	}
}

// unread is the protocol's error for a resource that can't be read, in the words of a tool's.
func unread(uri string, err error) error {
	out := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: words(err)}
	if code := api.CodeOf(err); code == api.CodeNotFound || code == api.CodeGone {
		out.Code = jsonrpc.CodeInvalidParams
		if data, err := json.Marshal(map[string]string{"uri": uri}); err == nil {
			out.Data = data
		}
	}
	return out
}
