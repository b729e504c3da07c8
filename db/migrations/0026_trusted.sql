-- What a claim tells its worker as trusted is one version of the agent, with who set
-- it, and the worker's own instructions as they were at the claim.

-- +goose Up
ALTER TABLE agents ADD COLUMN timeouts_set_by INTEGER NOT NULL DEFAULT 0; -- as run_set_by; 0 = a program, or not known
ALTER TABLE agent_versions ADD COLUMN run_set_by INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agent_versions ADD COLUMN timeouts_set_by INTEGER NOT NULL DEFAULT 0;
UPDATE agent_versions SET run_set_by = COALESCE((
    SELECT a.run_set_by FROM agents a WHERE a.id = agent_versions.agent_id AND a.version = agent_versions.version), 0);

-- What a worker's own process said is its owner's word; who has changed it on the
-- record since was not kept, and may have been an admin.
ALTER TABLE workers ADD COLUMN instructions_set_by INTEGER NOT NULL DEFAULT 0;
UPDATE workers SET instructions_set_by = owner_user_id WHERE pinned NOT LIKE '%instructions%';

ALTER TABLE claims ADD COLUMN agent_version INTEGER NOT NULL DEFAULT 0; -- 0 on what was closed before this column
ALTER TABLE claims ADD COLUMN worker_instructions TEXT NOT NULL DEFAULT '';
ALTER TABLE claims ADD COLUMN worker_instructions_set_by INTEGER NOT NULL DEFAULT 0;
UPDATE claims SET
    agent_version = COALESCE((SELECT a.version FROM agents a WHERE a.id = claims.agent_id), 0),
    worker_instructions = COALESCE((SELECT w.instructions FROM workers w WHERE w.id = claims.worker_id), ''),
    worker_instructions_set_by = COALESCE((SELECT w.instructions_set_by FROM workers w WHERE w.id = claims.worker_id), 0)
WHERE closed_at = 0;

-- +goose Down
-- Migrations are forward-only: a snapshot is taken first, see docs.
