-- name: Counter :one
SELECT value FROM counters WHERE name = @name;

-- name: SetCounter :execrows
UPDATE counters SET value = @value WHERE name = @name;
