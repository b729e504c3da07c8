package server

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"stint/account"
	"stint/api"
	"stint/server/mcp"
)

// The paths of the OAuth provider. Programs learn them from the metadata (contract 8.2).
const (
	authorizeRoute  = "/oauth/authorize"
	tokenRoute      = "/oauth/token"
	revokeRoute     = "/oauth/revoke"
	deviceRoute     = "/oauth/device"
	registerRoute   = "/oauth/register"
	verifyRoute     = "/device"
	authServerRoute = "/.well-known/oauth-authorization-server"
	resourceRoute   = "/.well-known/oauth-protected-resource"
)

func (s *Server) authServer(x *exchange) (response, error) {
	at, register := s.here(x.r), ""
	if s.registers {
		register = at + registerRoute
	}
	return reply(api.AuthServer{
		Issuer: at, AuthorizationEndpoint: at + authorizeRoute, TokenEndpoint: at + tokenRoute,
		DeviceEndpoint: at + deviceRoute, RevocationEndpoint: at + revokeRoute,
		ResponseTypes: []string{"code"}, ResponseModes: []string{"query"},
		GrantTypes: []string{api.GrantCode, api.GrantRefresh, api.GrantDevice}, Scopes: append(scopesOf(""), scopesOf(mcpRoute)...),
		TokenAuthMethods: []string{"none"}, RevocationAuthMethods: []string{"none"}, ChallengeMethods: []string{"S256"},
		IssuerInAnswers: true, RegistrationEndpoint: register,
	}, nil)
}

func (s *Server) protectedResource(x *exchange) (response, error) {
	at := s.here(x.r)
	return reply(api.ProtectedResource{
		Resource: at + partOf(x.r), Name: "Stint", AuthServers: []string{at}, Scopes: scopesOf(partOf(x.r)), BearerMethods: []string{"header"},
	}, nil)
}

// challenge is what an answer without a good sign-in asks programs to do next.
func (x *exchange) challenge() string {
	text := x.bearer(scopesOf(partOf(x.r)))
	if x.r.Header["Authorization"] != nil {
		text += `, error="invalid_token"`
	}
	return text
}

// scopeChallenge is what an answer to a program that was allowed too little asks it to do next:
// to ask its person for these scopes too (RFC 6750, 3.1).
func (x *exchange) scopeChallenge(needs []mcp.Scope) string {
	return x.bearer(scopeNames(needs)) + `, error="insufficient_scope"`
}

func (x *exchange) bearer(scopes []string) string {
	return `Bearer realm="stint", resource_metadata="` + x.server.metadataOf(x.r) + `", scope="` + strings.Join(scopes, " ") + `"`
}

// resourceOf is the path of the part of this server that `resource` names by any address of
// the server's (RFC 8707); nil when it names none. The API's path is empty.
func (s *Server) resourceOf(form url.Values) (*string, error) {
	var found *string
	for _, text := range form["resource"] {
		u, err := url.Parse(text)
		part, here := "", false
		if err == nil && u.User == nil && u.Opaque == "" && !strings.ContainsAny(text, "?#") {
			part, here = s.partNamed(u)
		}
		if !here || found != nil && *found != part {
			return nil, &account.OAuthError{Code: "invalid_target", Detail: "The resource is not this server, or a part of it."}
		}
		found = &part
	}
	return found, nil
}

// partNamed is the part of this server that a URL names; false when it names none. What else is
// on the public host isn't ours.
func (s *Server) partNamed(u *url.URL) (part string, ok bool) {
	at, base := strings.TrimRight(u.Path, "/"), s.public.base()
	inner, below := strings.CutPrefix(at, base)
	switch u.Scheme {
	case "http":
		if ok = s.hosts.Load().has(u.Host); !below {
			inner = at
		}
	case "https":
		ok = below && s.public.URL != nil && strings.EqualFold(u.Host, s.public.URL.Host)
	}
	return inner, ok && (inner == "" || inner == mcpRoute)
}

// once refuses parameters that come twice: two readers could take different ones.
func once(form url.Values) error {
	for name, values := range form {
		if len(values) > 1 && name != "resource" {
			return &account.OAuthError{Code: "invalid_request", Detail: "A parameter comes twice."}
		}
	}
	return nil
}

// scopesOf are the scopes of a part of this server. Those of the tools are scopes of nothing
// else.
func scopesOf(part string) []string {
	if part != mcpRoute {
		return []string{api.ScopeUser}
	}
	return scopeNames(mcp.Scopes)
}

func scopeNames(scopes []mcp.Scope) (names []string) {
	for _, scope := range scopes {
		names = append(names, string(scope))
	}
	return names
}

// granted reads which scopes of a part a program asks for: "" for all of them.
func granted(form url.Values, part string) (string, error) {
	all, asked := scopesOf(part), strings.Fields(form.Get("scope"))
	for _, scope := range asked {
		if !slices.Contains(all, scope) && scope != api.ScopeUser {
			return "", &account.OAuthError{Code: "invalid_scope", Detail: "The scopes are " + strings.Join(all, ", ") + "."}
		}
	}
	kept := slices.DeleteFunc(slices.Clone(all), func(scope string) bool { return !slices.Contains(asked, scope) })
	if len(asked) == 0 || slices.Contains(asked, api.ScopeUser) || len(kept) == len(all) {
		return "", nil
	}
	return strings.Join(kept, " "), nil
}

// scopeKnown refuses what is no scope at all. A refreshed token keeps the scopes of its sign-in.
func scopeKnown(form url.Values) error {
	_, err := granted(form, mcpRoute)
	return err
}

// presented reads the form of a program that asks for tokens or for a code.
func (x *exchange) presented() (form url.Values, by account.Presented, err error) {
	if form, err = x.form(); err != nil {
		return nil, by, err
	}
	if x.r.Header["Authorization"] != nil {
		return nil, by, &account.OAuthError{Code: "invalid_client", Detail: "Programs have no secret here: send client_id in the form alone."}
	}
	if err := errors.Join(once(form), scopeKnown(form)); err != nil {
		return nil, by, err
	}
	client, ok, err := x.server.accounts.ClientOf(x.r.Context(), form.Get("client_id"))
	if err != nil {
		return nil, by, err
	}
	if !ok {
		return nil, by, &account.OAuthError{Code: "invalid_client", Detail: "No program of that client_id is registered here."}
	}
	by = account.Presented{Client: client.ID, From: x.server.from(x.r)}
	by.Resource, err = x.server.resourceOf(form)
	return form, by, err
}

// token exchanges a code, a refresh token or a device's code for tokens.
func (s *Server) token(x *exchange) (response, error) {
	form, by, err := x.presented()
	if err != nil {
		return x.oauthRefusal(err)
	}
	ctx := x.r.Context()
	var got account.Tokens
	switch form.Get("grant_type") {
	case api.GrantCode:
		got, err = s.accounts.TradeCode(ctx, by, form.Get("code"), form.Get("redirect_uri"), form.Get("code_verifier"))
	case api.GrantRefresh:
		got, err = s.accounts.Refresh(ctx, by, form.Get("refresh_token"))
	case api.GrantDevice:
		got, err = s.accounts.TradeDevice(ctx, by, form.Get("device_code"))
	default:
		err = &account.OAuthError{Code: "unsupported_grant_type", Detail: "The metadata lists the grants that there are."}
	}
	if err != nil {
		return x.oauthRefusal(err)
	}
	return reply(api.OAuthTokens{
		AccessToken: got.Access, TokenType: "Bearer", ExpiresIn: int64(got.ExpiresIn / time.Second), RefreshToken: got.Refresh, Scope: cmp.Or(got.Scopes, api.ScopeUser),
	}, nil)
}

// startDevice gives a code to a program that has no browser.
func (s *Server) startDevice(x *exchange) (response, error) {
	form, by, err := x.presented()
	if err != nil {
		return x.oauthRefusal(err)
	}
	if scope := form.Get("scope"); scope != "" && scope != api.ScopeUser {
		return x.oauthRefusal(&account.OAuthError{Code: "invalid_scope", Detail: "The one scope of a device is “" + api.ScopeUser + "”."})
	}
	d, err := s.accounts.StartDevice(x.r.Context(), by)
	if err != nil {
		return x.oauthRefusal(err)
	}
	return reply(api.OAuthDevice{
		DeviceCode: d.Code, UserCode: d.UserCode, VerificationURI: s.home(x.r) + verifyRoute,
		ExpiresIn: int64(d.ExpiresIn / time.Second), Interval: int64(d.Interval / time.Second),
	}, nil)
}

// revoke ends the sign-in that a token belongs to. An unknown token is not an error: it is
// already invalid, as was wanted (RFC 7009).
func (s *Server) revoke(x *exchange) (response, error) {
	form, by, err := x.presented()
	if err != nil {
		return x.oauthRefusal(err)
	}
	if form.Get("token") == "" {
		return x.oauthRefusal(&account.OAuthError{Code: "invalid_request", Detail: "The token to revoke is missing."})
	}
	return reply(struct{}{}, s.accounts.RevokeProgram(x.r.Context(), by, form.Get("token")))
}

// oauthRefusal answers a refusal in the words of OAuth; any other error is returned.
func (x *exchange) oauthRefusal(err error) (response, error) {
	var refused *account.OAuthError
	if !errors.As(err, &refused) {
		return response{}, err
	}
	status := http.StatusBadRequest
	if refused.Code == "invalid_client" && x.r.Header["Authorization"] != nil {
		status = http.StatusUnauthorized
		x.Header().Set("WWW-Authenticate", `Basic realm="stint"`)
	}
	return response{status: status, body: api.OAuthRefusal{Error: refused.Code, Description: refused.Detail}}, nil
}
