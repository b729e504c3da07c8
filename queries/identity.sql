-- name: InsertWorkspace :exec
INSERT INTO workspaces (id, slug, name, created_at) VALUES (@id, @slug, @name, @created_at);

-- name: Workspace :one
SELECT * FROM workspaces WHERE id = @id;

-- name: WorkspaceBySlug :one
SELECT * FROM workspaces WHERE slug = @slug;

-- name: WorkspacesOf :many
SELECT w.* FROM workspaces w JOIN members m ON m.workspace_id = w.id WHERE m.user_id = @user_id ORDER BY w.id;

-- name: InsertUser :exec
INSERT INTO users (id, name, created_at) VALUES (@id, @name, @created_at);

-- name: User :one
SELECT * FROM users WHERE id = @id;

-- name: FirstUser :one
SELECT * FROM users ORDER BY id LIMIT 1;

-- name: InsertMember :exec
INSERT INTO members (workspace_id, user_id, role, created_at) VALUES (@workspace_id, @user_id, @role, @created_at);

-- name: Member :one
SELECT * FROM members WHERE workspace_id = @workspace_id AND user_id = @user_id;

-- name: InsertToken :exec
INSERT INTO tokens (id, user_id, kind, hash, label, address, created_at, expires_at, last_used_at, used_at, revoked_at)
VALUES (@id, @user_id, @kind, @hash, @label, @address, @created_at, @expires_at, 0, 0, 0);

-- name: TokenByHash :one
SELECT * FROM tokens WHERE hash = @hash;

-- name: UseLink :execrows
UPDATE tokens SET used_at = @now WHERE id = @id AND kind = 'link' AND used_at = 0 AND revoked_at = 0 AND expires_at > @now;

-- name: RevokeToken :execrows
UPDATE tokens SET revoked_at = @now WHERE id = @id AND revoked_at = 0;
