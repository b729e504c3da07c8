-- name: Output :one
SELECT * FROM outputs WHERE session_id = @session_id;

-- For a session from before outputs were counted.
-- name: SumOfItems :one
SELECT CAST(COALESCE(SUM(OCTET_LENGTH(text)), 0) AS INTEGER) AS bytes, COUNT(*) AS n FROM items WHERE session_id = @session_id;

-- name: PutOutput :exec
INSERT INTO outputs (session_id, head_bytes, tail_from, tail_bytes, dropped_bytes)
VALUES (@session_id, @head_bytes, @tail_from, @tail_bytes, @dropped_bytes)
ON CONFLICT (session_id) DO UPDATE SET
    head_bytes = excluded.head_bytes, tail_from = excluded.tail_from, tail_bytes = excluded.tail_bytes, dropped_bytes = excluded.dropped_bytes;

-- What can be dropped of a session's output, oldest first.
-- name: DroppableItems :many
SELECT seq, CAST(OCTET_LENGTH(text) AS INTEGER) AS bytes FROM items
WHERE session_id = @session_id AND seq >= @after AND seq < @before AND kind IN ('text', 'thinking', 'tool_call', 'tool_result', 'status')
ORDER BY seq LIMIT @n;

-- name: DropItems :exec
DELETE FROM items
WHERE session_id = @session_id AND seq >= @after AND seq <= @upto AND kind IN ('text', 'thinking', 'tool_call', 'tool_result', 'status');

-- name: MarkGap :execrows
UPDATE items SET kind = 'text', client_id = '', stream = '', tool = '', call_id = '', failed = 0, truncated = 1, text = @text
WHERE session_id = @session_id AND seq = @seq;
