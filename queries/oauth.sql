-- name: InsertProgram :exec
INSERT INTO programs (id, user_id, client, resource, scopes, label, address, created_at, expires_at, last_used_at, revoked_at)
VALUES (@id, @user_id, @client, @resource, @scopes, @label, @address, @created_at, @expires_at, 0, 0);

-- name: Program :one
SELECT * FROM programs WHERE id = @id;

-- name: ProgramsOf :many
SELECT * FROM programs
WHERE user_id = @user_id AND revoked_at = 0 AND expires_at > @now AND id < @before ORDER BY id DESC LIMIT @n;

-- name: TouchProgram :execrows
UPDATE programs SET last_used_at = @now WHERE id = @id AND revoked_at = 0 AND last_used_at < @now;

-- name: RevokeProgram :execrows
UPDATE programs SET revoked_at = @now WHERE id = @id AND revoked_at = 0;

-- name: RevokeProgramsOf :execrows
UPDATE programs SET revoked_at = @now WHERE user_id = @user_id AND revoked_at = 0;

-- name: InsertProgramToken :exec
INSERT INTO program_tokens (hash, program_id, kind, expires_at, used_at, salt)
VALUES (@hash, @program_id, @kind, @expires_at, 0, @salt);

-- name: ProgramToken :one
SELECT sqlc.embed(t), sqlc.embed(p), u.name AS user_name
FROM program_tokens t JOIN programs p ON p.id = t.program_id JOIN users u ON u.id = p.user_id WHERE t.hash = @hash;

-- name: UseProgramToken :execrows
UPDATE program_tokens SET used_at = @now, salt = @salt WHERE hash = @hash AND kind = 'refresh' AND used_at = 0 AND expires_at > @now;

-- name: DropOldProgramTokens :execrows
DELETE FROM program_tokens WHERE expires_at <= @now;

-- name: InsertOAuthCode :exec
INSERT INTO oauth_codes (hash, user_id, client, redirect_uri, challenge, resource, scopes, expires_at, used_at, program_id)
VALUES (@hash, @user_id, @client, @redirect_uri, @challenge, @resource, @scopes, @expires_at, 0, 0);

-- name: OAuthCode :one
SELECT * FROM oauth_codes WHERE hash = @hash;

-- name: UseOAuthCode :execrows
UPDATE oauth_codes SET used_at = @now, program_id = @program_id WHERE hash = @hash AND used_at = 0;

-- name: DropOldOAuthCodes :execrows
DELETE FROM oauth_codes WHERE expires_at <= @before;

-- name: InsertDeviceCode :exec
INSERT INTO device_codes (hash, user_code, client, resource, label, address, created_at, expires_at, wait, asked_at, decided_at, user_id, used_at)
VALUES (@hash, @user_code, @client, @resource, @label, @address, @created_at, @expires_at, @wait, 0, 0, 0, 0);

-- name: DeviceCode :one
SELECT * FROM device_codes WHERE hash = @hash;

-- name: DeviceByUserCode :one
SELECT * FROM device_codes WHERE user_code = @user_code;

-- name: AskDeviceCode :execrows
UPDATE device_codes SET asked_at = @now, wait = @wait WHERE hash = @hash;

-- name: DecideDeviceCode :execrows
UPDATE device_codes SET decided_at = @now, user_id = @user_id WHERE hash = @hash AND decided_at = 0 AND expires_at > @now;

-- name: UseDeviceCode :execrows
UPDATE device_codes SET used_at = @now WHERE hash = @hash AND used_at = 0 AND user_id <> 0;

-- name: DropOldDeviceCodes :execrows
DELETE FROM device_codes WHERE expires_at <= @now;

-- name: InsertOAuthClient :exec
INSERT INTO oauth_clients (id, client, name, redirects, address, created_at, used_at, expires_at)
VALUES (@id, @client, @name, @redirects, @address, @created_at, 0, @expires_at);

-- name: OAuthClient :one
SELECT * FROM oauth_clients WHERE client = @client AND expires_at > @now;

-- name: UnusedOAuthClients :many
SELECT id FROM oauth_clients WHERE used_at = 0 ORDER BY id DESC LIMIT @n;

-- name: DropUnusedOAuthClients :execrows
DELETE FROM oauth_clients WHERE used_at = 0 AND id <= @oldest;

-- name: UseOAuthClient :execrows
UPDATE oauth_clients SET used_at = @now, expires_at = @expires_at WHERE client = @client;

-- name: OAuthClients :many
SELECT sqlc.embed(c), CAST(COUNT(p.id) AS INTEGER) AS sign_ins, CAST(COALESCE(MAX(p.last_used_at), 0) AS INTEGER) AS last_used_at
FROM oauth_clients c LEFT JOIN programs p ON p.client = c.client AND p.revoked_at = 0 AND p.expires_at > @now
WHERE c.expires_at > @now AND c.id < @before GROUP BY c.id ORDER BY c.id DESC LIMIT @n;

-- name: DeleteOAuthClient :execrows
DELETE FROM oauth_clients WHERE id = @id;

-- name: DropOldOAuthClients :execrows
DELETE FROM oauth_clients WHERE expires_at <= @now;

-- name: ProgramsOfClient :many
SELECT * FROM programs WHERE client = @client AND revoked_at = 0 ORDER BY id;
