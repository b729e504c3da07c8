package engine

import (
	"context"
	"fmt"
	"strings"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// CreateWorkspace creates a workspace whose owner is the caller. Rights: whoever owns a
// workspace. Errors: forbidden, invalid, slug_taken.
func (e *Engine) CreateWorkspace(ctx context.Context, who account.Identity, in api.WorkspaceInput) (out api.Workspace, err error) {
	if !who.Person() {
		return out, account.UserTokenRequired("")
	}
	in.Slug = strings.ToLower(strings.TrimSpace(in.Slug))
	if in.Name = strings.TrimSpace(in.Name); in.Name == "" {
		in.Name = in.Slug
	}
	var v api.Invalid
	if !api.SlugForm.MatchString(in.Slug) {
		v.Add("slug", "must be 2 to 32 characters: a lowercase letter, then letters, digits or hyphens")
	}
	account.CheckPersonName(&v, &in.Name)
	if err := v.Err(); err != nil {
		return out, err
	}
	err = e.write(ctx, func(tx *db.Tx) error {
		if _, err := tx.OwnsAny(tx.Context(), who.UserID); err != nil {
			if db.None(err) {
				return api.Refuse(api.CodeForbidden, "Only an owner of a workspace can make another.")
			}
			return fmt.Errorf("read the memberships of user %s: %w", who.UserID, err)
		}
		now := db.Micros(tx.Now)
		ws := api.WorkspaceID(tx.NewID())
		err := tx.InsertWorkspace(tx.Context(), queries.InsertWorkspaceParams{ID: ws, Slug: in.Slug, Name: in.Name, CreatedAt: now})
		if db.IsUnique(err) {
			return &api.Error{
				Code: api.CodeSlugTaken, Detail: fmt.Sprintf("There is a workspace %q already.", in.Slug),
				Fields: []api.FieldError{{Field: "slug", Detail: "is taken: choose another"}},
			}
		}
		if err != nil {
			return fmt.Errorf("make workspace %q: %w", in.Slug, err)
		}
		err = tx.InsertMember(tx.Context(), queries.InsertMemberParams{WorkspaceID: ws, UserID: who.UserID, Role: api.Owner, CreatedAt: now})
		if err != nil {
			return fmt.Errorf("make user %s its owner: %w", who.UserID, err)
		}
		out = api.Workspace{ID: ws, Slug: in.Slug, Name: in.Name}
		return tx.Log(db.Event{Workspace: ws, Actor: who.UserID.String(), Type: api.EventWorkspaceCreated, Data: api.EventData{"slug": in.Slug, "name": in.Name}})
	})
	return out, err
}

// RenameWorkspace changes what people call it; its slug stays. Rights: admin.
// Errors: forbidden, invalid.
func (e *Engine) RenameWorkspace(ctx context.Context, c Caller, name string) (out api.Workspace, err error) {
	if err := c.May(account.EditWorkspace); err != nil {
		return out, err
	}
	var v api.Invalid
	account.CheckPersonName(&v, &name)
	if err := v.Err(); err != nil {
		return out, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		out = api.Workspace{ID: c.WorkspaceID, Slug: c.Workspace, Name: name}
		if err := db.One(tx.RenameWorkspace(tx.Context(), queries.RenameWorkspaceParams{Name: name, ID: c.WorkspaceID})); err != nil {
			return fmt.Errorf("rename workspace %s: %w", c.WorkspaceID, err)
		}
		return tx.Log(db.Event{Workspace: c.WorkspaceID, Actor: c.Actor(), Type: api.EventWorkspaceRenamed, Data: api.EventData{"name": name}})
	})
	return out, err
}
