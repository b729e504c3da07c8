package server

import (
	"net/http"
	"regexp"
	"strings"

	"stint/account"
	"stint/api"
	"stint/web"
)

func (s *Server) whoami(x *exchange) (response, error) {
	who := x.grant.who
	return reply(api.Whoami{UserID: who.UserID, Name: who.Name, KeyID: who.KeyID, Scopes: who.Scopes, SessionID: runSession(who)}, nil)
}

func runSession(who account.Identity) api.SessionID {
	if who.Run == nil {
		return 0
	}
	return who.Run.Session
}

func (s *Server) listWorkspaces(x *exchange) (response, error) {
	all, err := s.accounts.Workspaces(x.r.Context(), x.grant.who)
	return reply(api.List[api.Workspace]{Items: all}, err)
}

func (s *Server) showWorkspace(x *exchange) (response, error) {
	all, err := s.accounts.Workspaces(x.r.Context(), x.grant.who)
	if err != nil {
		return response{}, err
	}
	for _, w := range all {
		if w.ID == x.caller.WorkspaceID {
			return reply(w, nil)
		}
	}
	return response{}, api.Refuse(api.CodeNotFound, "There is no such workspace here.")
}

// healthy says that the process answers.
func (s *Server) healthy(x *exchange) (response, error) {
	if k := s.looks.of(x.r); k != nil {
		return s.arrives(x, k)
	}
	return reply(api.Health{Status: "ok", Version: s.version}, nil)
}

// ready says that the store answers too, and that no shutdown has begun.
func (s *Server) ready(x *exchange) (response, error) {
	if s.closing.Err() != nil {
		return response{}, api.Refuse(api.CodeUnavailable, "The server is shutting down.")
	}
	if err := s.engine.Ready(x.r.Context()); err != nil {
		return response{}, err
	}
	return reply(api.Health{Status: "ready", Warning: s.engine.Warning()}, nil)
}

// rooted finds in the document where its paths begin.
var rooted = regexp.MustCompile(`(?m)("?servers"?:[\s[{-]+"?url"?: ?"?)/("|$)`)

func (s *Server) openAPI(x *exchange) (response, error) {
	kind, text := "application/yaml", api.OpenAPIYAML()
	if strings.HasSuffix(x.r.URL.Path, ".json") {
		kind, text = "application/json", api.OpenAPIJSON()
	}
	if base := web.BaseOf(x.r.Context()); base != "" {
		text = rooted.ReplaceAll(text, []byte("${1}"+base+"${2}"))
	}
	x.Header().Set("Content-Type", kind)
	x.WriteHeader(http.StatusOK)
	_, _ = x.Write(text) // a client that went away isn't our failure
	return response{written: true}, nil
}
