package engine

import (
	"context"
	"fmt"
	"strings"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// CreateWorkspace makes a workspace whose owner is the caller. Rights: whoever
// owns a workspace. Errors: forbidden, invalid, slug_taken.
func (e *Engine) CreateWorkspace(ctx context.Context, who Identity, in api.WorkspaceInput) (out api.Workspace, err error) {
	if !who.Person() {
		return out, UserTokenRequired("")
	}
	in.Slug = strings.ToLower(strings.TrimSpace(in.Slug))
	if in.Name = strings.TrimSpace(in.Name); in.Name == "" {
		in.Name = in.Slug
	}
	var v api.Invalid
	if !slugForm.MatchString(in.Slug) {
		v.Add("slug", "must be 2 to 32 characters: a lowercase letter, then letters, digits or hyphens")
	}
	checkPersonName(&v, &in.Name)
	if err := v.Err(); err != nil {
		return out, err
	}
	err = e.write(ctx, func(tx *db.Tx) error {
		if _, err := tx.OwnsAny(wctx(), who.UserID); err != nil {
			if none(err) {
				return api.Refuse(api.CodeForbidden, "Only an owner of a workspace can make another.")
			}
			return fmt.Errorf("read the memberships of user %s: %w", who.UserID, err)
		}
		now := micros(tx.Now)
		ws := api.WorkspaceID(tx.NewID())
		err := tx.InsertWorkspace(wctx(), queries.InsertWorkspaceParams{ID: ws, Slug: in.Slug, Name: in.Name, CreatedAt: now})
		if db.IsUnique(err) {
			return &api.Error{
				Code: api.CodeSlugTaken, Detail: fmt.Sprintf("There is a workspace %q already.", in.Slug),
				Fields: []api.FieldError{{Field: "slug", Detail: "is taken: choose another"}},
			}
		}
		if err != nil {
			return fmt.Errorf("make workspace %q: %w", in.Slug, err)
		}
		err = tx.InsertMember(wctx(), queries.InsertMemberParams{WorkspaceID: ws, UserID: who.UserID, Role: api.Owner, CreatedAt: now})
		if err != nil {
			return fmt.Errorf("make user %s its owner: %w", who.UserID, err)
		}
		out = api.Workspace{ID: ws, Slug: in.Slug, Name: in.Name}
		return e.logPeople(tx, ws, who.UserID.String(), evWorkspaceCreated, api.EventData{"slug": in.Slug, "name": in.Name})
	})
	return out, err
}

// RenameWorkspace changes what people call it; its slug stays. Rights: admin.
// Errors: forbidden, invalid.
func (e *Engine) RenameWorkspace(ctx context.Context, c Caller, name string) (out api.Workspace, err error) {
	if err := c.may(mayEditWorkspace); err != nil {
		return out, err
	}
	var v api.Invalid
	checkPersonName(&v, &name)
	if err := v.Err(); err != nil {
		return out, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		out = api.Workspace{ID: c.WorkspaceID, Slug: c.Workspace, Name: name}
		if err := one(tx.RenameWorkspace(wctx(), queries.RenameWorkspaceParams{Name: name, ID: c.WorkspaceID})); err != nil {
			return fmt.Errorf("rename workspace %s: %w", c.WorkspaceID, err)
		}
		return e.logPeople(tx, c.WorkspaceID, c.actor(), evWorkspaceRenamed, api.EventData{"name": name})
	})
	return out, err
}
