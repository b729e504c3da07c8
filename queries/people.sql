-- name: LoginByName :one
SELECT * FROM logins WHERE name = @name;

-- name: LoginOf :one
SELECT * FROM logins WHERE user_id = @user_id;

-- name: AnyLogin :one
SELECT * FROM logins ORDER BY user_id LIMIT 1;

-- name: PutLogin :exec
INSERT INTO logins (user_id, name, password, changed_at) VALUES (@user_id, @name, @password, @changed_at)
ON CONFLICT (user_id) DO UPDATE SET name = excluded.name, password = excluded.password, changed_at = excluded.changed_at;

-- name: RenameUser :execrows
UPDATE users SET name = @name WHERE id = @id;

-- name: FirstOwner :one
SELECT u.* FROM users u JOIN members m ON m.user_id = u.id WHERE m.role = 'owner' ORDER BY m.workspace_id, u.id LIMIT 1;

-- name: OwnsAny :one
SELECT * FROM members WHERE user_id = @user_id AND role = 'owner' LIMIT 1;

-- name: RenameWorkspace :execrows
UPDATE workspaces SET name = @name WHERE id = @id;

-- name: MembersOf :many
SELECT m.user_id, m.role, m.created_at, u.name, CAST(COALESCE(l.name, '') AS TEXT) AS login
FROM members m JOIN users u ON u.id = m.user_id LEFT JOIN logins l ON l.user_id = m.user_id
WHERE m.workspace_id = @workspace_id AND m.user_id < @before ORDER BY m.user_id DESC LIMIT @n;

-- name: CountOwners :one
SELECT COUNT(*) FROM members WHERE workspace_id = @workspace_id AND role = 'owner';

-- name: SetRole :execrows
UPDATE members SET role = @role WHERE workspace_id = @workspace_id AND user_id = @user_id AND role = @from_role;

-- name: DeleteMember :execrows
DELETE FROM members WHERE workspace_id = @workspace_id AND user_id = @user_id AND role = @from_role;

-- name: CountMemberships :one
SELECT COUNT(*) FROM members WHERE user_id = @user_id;

-- name: OpenOfMember :many
SELECT s.id FROM agents a CROSS JOIN sessions s
WHERE s.agent_id = a.id AND a.workspace_id = @workspace_id AND s.ended_at = 0
  AND (s.owner_user_id = @user_id OR s.triggered_by_user_id = @user_id)
ORDER BY s.id;

-- name: WorkersOfMember :many
SELECT * FROM workers WHERE workspace_id = @workspace_id AND owner_user_id = @user_id AND deleted_at = 0 ORDER BY id;

-- name: AgentsRunAs :many
SELECT * FROM agents WHERE workspace_id = @workspace_id AND runs_as_user_id = @user_id AND deleted_at = 0 ORDER BY id;

-- name: TokensOf :many
SELECT * FROM tokens
WHERE user_id = @user_id AND revoked_at = 0 AND kind <> 'link' AND expires_at > @now AND id < @before ORDER BY id DESC LIMIT @n;

-- name: TouchToken :execrows
UPDATE tokens SET last_used_at = @now WHERE id = @id AND revoked_at = 0 AND last_used_at < @now;

-- name: RevokeTokenOf :execrows
UPDATE tokens SET revoked_at = @now WHERE id = @id AND user_id = @user_id AND revoked_at = 0;

-- name: RevokeSignInsOf :execrows
UPDATE tokens SET revoked_at = @now WHERE user_id = @user_id AND revoked_at = 0 AND kind = 'cookie' AND id <> @keep;

-- name: RevokeLinksOf :execrows
UPDATE tokens SET revoked_at = @now WHERE user_id = @user_id AND revoked_at = 0 AND kind = 'link';

-- name: RevokeTokensOf :execrows
UPDATE tokens SET revoked_at = @now WHERE user_id = @user_id AND revoked_at = 0;

-- name: InsertInvitation :exec
INSERT INTO invitations (id, workspace_id, role, note, hash, invited_by, created_at, expires_at, used_at, used_by, revoked_at)
VALUES (@id, @workspace_id, @role, @note, @hash, @invited_by, @created_at, @expires_at, 0, 0, 0);

-- name: InvitationByHash :one
SELECT * FROM invitations WHERE hash = @hash;

-- name: InvitationsOf :many
SELECT sqlc.embed(i), u.name AS invited_by_name FROM invitations i JOIN users u ON u.id = i.invited_by
WHERE i.workspace_id = @workspace_id AND i.used_at = 0 AND i.revoked_at = 0 AND i.expires_at > @now AND i.id < @before
ORDER BY i.id DESC LIMIT @n;

-- name: UseInvitation :execrows
UPDATE invitations SET used_at = @now, used_by = @used_by WHERE id = @id AND used_at = 0 AND revoked_at = 0 AND expires_at > @now;

-- name: RevokeInvitation :execrows
UPDATE invitations SET revoked_at = @now WHERE id = @id AND workspace_id = @workspace_id AND used_at = 0 AND revoked_at = 0;

-- name: RevokeInvitationsBy :execrows
UPDATE invitations SET revoked_at = @now WHERE workspace_id = @workspace_id AND invited_by = @invited_by AND used_at = 0 AND revoked_at = 0;

-- name: Attempts :one
SELECT * FROM attempts WHERE key = @key;

-- name: PutAttempts :exec
INSERT INTO attempts (key, since, until, count) VALUES (@key, @since, @until, @count)
ON CONFLICT (key) DO UPDATE SET since = excluded.since, until = excluded.until, count = excluded.count;

-- name: DropAttempts :execrows
DELETE FROM attempts WHERE key = @key;

-- name: DropOldAttempts :execrows
DELETE FROM attempts WHERE until <= @now;

-- name: InsertKey :exec
INSERT INTO api_keys (id, workspace_id, user_id, name, scopes, hash, hint, created_at, expires_at, last_used_at, revoked_at)
VALUES (@id, @workspace_id, @user_id, @name, @scopes, @hash, @hint, @created_at, @expires_at, 0, 0);

-- name: KeyByHash :one
SELECT * FROM api_keys WHERE hash = @hash;

-- name: Key :one
SELECT * FROM api_keys WHERE id = @id;

-- name: KeysOf :many
SELECT sqlc.embed(k), u.name AS user_name FROM api_keys k JOIN users u ON u.id = k.user_id
WHERE k.workspace_id = @workspace_id AND k.revoked_at = 0 AND k.id < @before
  AND (k.user_id = @me OR CAST(@every AS INTEGER) = 1)
ORDER BY k.id DESC LIMIT @n;

-- name: TouchKey :execrows
UPDATE api_keys SET last_used_at = @now WHERE id = @id AND revoked_at = 0 AND last_used_at < @now;

-- name: RevokeKey :execrows
UPDATE api_keys SET revoked_at = @now WHERE id = @id AND revoked_at = 0;

-- name: RevokeKeysOf :execrows
UPDATE api_keys SET revoked_at = @now WHERE workspace_id = @workspace_id AND user_id = @user_id AND revoked_at = 0;

-- name: Token :one
SELECT * FROM tokens WHERE id = @id;

-- name: IdentityBySubject :one
SELECT * FROM identities WHERE issuer = @issuer AND subject = @subject;

-- name: IdentitiesOf :many
SELECT * FROM identities WHERE user_id = @user_id ORDER BY id;

-- name: InsertIdentity :exec
INSERT INTO identities (id, user_id, issuer, subject, label, created_at, last_used_at)
VALUES (@id, @user_id, @issuer, @subject, @label, @created_at, 0);

-- name: UseIdentity :execrows
UPDATE identities SET label = @label, last_used_at = @now WHERE id = @id;

-- name: DeleteIdentity :execrows
DELETE FROM identities WHERE id = @id AND user_id = @user_id;

-- name: AnyOwnersIdentity :one
SELECT i.* FROM identities i JOIN members m ON m.user_id = i.user_id WHERE m.role = 'owner' ORDER BY i.id LIMIT 1;

-- name: InsertOIDCSignIn :exec
INSERT INTO oidc_sign_ins (hash, purpose, user_id, token_id, ticket, next, expires_at)
VALUES (@hash, @purpose, @user_id, @token_id, @ticket, @next, @expires_at);

-- name: OIDCSignIn :one
SELECT * FROM oidc_sign_ins WHERE hash = @hash;

-- name: DropOIDCSignIn :execrows
DELETE FROM oidc_sign_ins WHERE hash = @hash;

-- name: DropOldOIDCSignIns :execrows
DELETE FROM oidc_sign_ins WHERE expires_at <= @now;
