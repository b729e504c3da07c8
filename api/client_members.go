package api

import (
	"context"
	"net/http"
	"net/url"
)

// Members lists a page of the workspace's members.
func (c *Client) Members(ctx context.Context, p Page) (List[WorkspaceMember], error) {
	return get[List[WorkspaceMember]](ctx, c, "members", p.query())
}

// SetRole gives a member another role.
func (c *Client) SetRole(ctx context.Context, id UserID, role Role) (WorkspaceMember, error) {
	return patch[WorkspaceMember](ctx, c, path("members", id.String()), RoleInput{Role: role})
}

// RemoveMember ends a membership and what depends on it.
func (c *Client) RemoveMember(ctx context.Context, id UserID) (MemberRemoved, error) {
	var out MemberRemoved
	_, err := c.do(ctx, call{method: http.MethodDelete, path: path("members", id.String())}, &out)
	return out, err
}

// Invite creates a one-time link that makes its holder a member.
func (c *Client) Invite(ctx context.Context, in InvitationInput) (Invitation, error) {
	return post[Invitation](ctx, c, "invitations", in)
}

// Invitations lists a page of the open ones.
func (c *Client) Invitations(ctx context.Context, p Page) (List[Invitation], error) {
	return get[List[Invitation]](ctx, c, "invitations", p.query())
}

// RevokeInvitation ends an open invitation.
func (c *Client) RevokeInvitation(ctx context.Context, id InviteID) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: path("invitations", id.String())}, nil)
	return err
}

// Keys lists a page of API keys.
func (c *Client) Keys(ctx context.Context, p Page) (List[Key], error) {
	return get[List[Key]](ctx, c, "keys", p.query())
}

// CreateKey makes an API key; only this answer has the key itself.
func (c *Client) CreateKey(ctx context.Context, in KeyInput) (Key, error) {
	return post[Key](ctx, c, "keys", in)
}

// RevokeKey ends an API key.
func (c *Client) RevokeKey(ctx context.Context, id KeyID) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: path("keys", id.String())}, nil)
	return err
}

// CreateWorkspace makes a workspace that the caller owns.
func (c *Client) CreateWorkspace(ctx context.Context, in WorkspaceInput) (Workspace, error) {
	return post[Workspace](ctx, c, "/api/v1/workspaces", in)
}

// Account returns the caller's own account.
func (c *Client) Account(ctx context.Context) (Account, error) {
	return get[Account](ctx, c, "/api/v1/account", nil)
}

// SetLogin changes how the caller signs in.
func (c *Client) SetLogin(ctx context.Context, in LoginInput) (Account, error) {
	return post[Account](ctx, c, "/api/v1/account/login", in)
}

// SignIns lists a page of where the caller is signed in.
func (c *Client) SignIns(ctx context.Context, p Page) (List[SignIn], error) {
	return get[List[SignIn]](ctx, c, "/api/v1/account/sign-ins", p.query())
}

// SignOutEverywhere ends all of the caller's other browsers.
func (c *Client) SignOutEverywhere(ctx context.Context) (SignedOut, error) {
	return post[SignedOut](ctx, c, "/api/v1/account/sign-out-everywhere", nil)
}

// Unlink stops an account at an external provider from signing the caller in.
func (c *Client) Unlink(ctx context.Context, id IdentityID) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: "/api/v1/account/identities/" + url.PathEscape(id.String())}, nil)
	return err
}

// Registrations lists the programs that registered themselves.
func (c *Client) Registrations(ctx context.Context, p Page) (List[RegisteredProgram], error) {
	return get[List[RegisteredProgram]](ctx, c, "/api/v1/programs", p.query())
}

// RevokeRegistration forgets a program that registered itself and ends its sign-ins.
func (c *Client) RevokeRegistration(ctx context.Context, id ClientID) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: "/api/v1/programs/" + url.PathEscape(id.String())}, nil)
	return err
}

func patch[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	var out T
	_, err := c.do(ctx, call{method: http.MethodPatch, path: path, body: body}, &out)
	return out, err
}
