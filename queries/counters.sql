-- name: Counter :one
SELECT value FROM counters WHERE name = @name;

-- name: SetCounter :execrows
UPDATE counters SET value = @value WHERE name = @name;

-- name: RaiseCounter :execrows
UPDATE counters SET value = @value WHERE name = @name AND value < @value;

-- name: PutCounter :exec
INSERT INTO counters (name, value) VALUES (@name, @value) ON CONFLICT (name) DO UPDATE SET value = excluded.value;
