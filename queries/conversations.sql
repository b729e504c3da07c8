-- name: Thread :one
SELECT * FROM threads WHERE id = @id;

-- name: NotePosted :exec
INSERT INTO threads (id, last_consumed, last_posted, turn_ended_at) VALUES (@id, 0, @last_posted, 0)
ON CONFLICT (id) DO UPDATE SET last_posted = excluded.last_posted WHERE threads.last_posted < excluded.last_posted;

-- name: NoteTurn :exec
INSERT INTO threads (id, last_consumed, last_posted, turn_ended_at) VALUES (@id, @last_consumed, 0, @turn_ended_at)
ON CONFLICT (id) DO UPDATE SET
    last_consumed = CASE WHEN threads.last_consumed < excluded.last_consumed THEN excluded.last_consumed ELSE threads.last_consumed END,
    turn_ended_at = CASE WHEN threads.turn_ended_at < excluded.turn_ended_at THEN excluded.turn_ended_at ELSE threads.turn_ended_at END;

-- name: InsertMessage :execrows
INSERT INTO messages (id, thread_id, session_id, client_id, user_id, text, at, now, taken_at, consumed, files)
VALUES (@id, @thread_id, @session_id, @client_id, @user_id, @text, @at, @now, 0, 0, @files)
ON CONFLICT (thread_id, client_id) WHERE client_id <> '' DO NOTHING;

-- name: MessageByClientID :one
SELECT * FROM messages WHERE thread_id = @thread_id AND client_id = @client_id AND client_id <> '';

-- name: MessagesAfter :many
SELECT sqlc.embed(m), u.name AS author FROM messages m JOIN users u ON u.id = m.user_id
WHERE m.thread_id = @thread_id AND m.id > @after ORDER BY m.id LIMIT @n;

-- What no finished turn has taken in: a turn that people said something to takes it in before older messages that wait.
-- name: LeftMessages :many
SELECT sqlc.embed(m), u.name AS author FROM messages m JOIN users u ON u.id = m.user_id
WHERE m.thread_id = @thread_id AND m.id > @after AND m.consumed = 0 ORDER BY m.id LIMIT @n;

-- name: TakeMessage :execrows
UPDATE messages SET taken_at = @taken_at WHERE id = @id AND thread_id = @thread_id AND taken_at = 0 AND consumed = 0;

-- name: MessageOfThread :one
SELECT * FROM messages WHERE id = @id AND thread_id = @thread_id;

-- name: ConsumeTaken :exec
UPDATE messages SET consumed = 1 WHERE thread_id = @thread_id AND id > @after AND taken_at > 0 AND consumed = 0;

-- name: AnsweredSince :many
SELECT * FROM prompts
WHERE session_id = @session_id AND resolution = 'answered' AND closed_at > @since ORDER BY id LIMIT @n;

-- name: DueDeadlines :many
SELECT id FROM prompts WHERE closed_at = 0 AND deadline_at > 0 AND deadline_at <= @now ORDER BY deadline_at LIMIT @n;

-- name: NextDeadline :one
SELECT deadline_at FROM prompts WHERE closed_at = 0 AND deadline_at > 0 AND deadline_at > @now ORDER BY deadline_at LIMIT 1;

-- A sum that reaches the maximum stays there: no report may fail because of it.
-- name: SpendOfAgent :execrows
UPDATE agents SET
    spent_on_day = CASE
        WHEN spend_day < @day THEN @cost
        WHEN spent_on_day < CAST(@most AS INTEGER) - @cost THEN spent_on_day + @cost
        ELSE CAST(@most AS INTEGER) END,
    spend_day = @day
WHERE id = @id;

-- name: SpentOutAgents :many
SELECT * FROM agents WHERE daily_spend_limit > 0 AND spent_on_day >= daily_spend_limit AND deleted_at = 0 ORDER BY id;

-- name: BeginSpendDay :execrows
UPDATE agents SET spent_on_day = 0 WHERE id = @id AND spend_day = @ended AND deleted_at = 0;

-- name: SpendDayOfAgent :execrows
UPDATE agents SET spend_day = @day WHERE id = @id;
