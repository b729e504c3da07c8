-- name: InsertAttachment :exec
INSERT INTO attachments (id, session_id, message_id, name, type, size, data, at)
VALUES (@id, @session_id, @message_id, @name, @type, @size, @data, @at);

-- name: CopyAttachment :execrows
INSERT INTO attachments (id, session_id, message_id, name, type, size, data, at)
SELECT @id, @session_id, @message_id, a.name, a.type, a.size, a.data, @at FROM attachments a WHERE a.id = @of;

-- name: AttachmentsOf :many
SELECT id, session_id, message_id, name, type, size FROM attachments
WHERE session_id = @session_id AND message_id >= @from_message AND message_id <= @to_message ORDER BY message_id, id;

-- name: Attachment :one
SELECT * FROM attachments WHERE id = @id AND session_id = @session_id;

-- name: DropAttachmentsOf :execrows
DELETE FROM attachments WHERE session_id = @session_id;
