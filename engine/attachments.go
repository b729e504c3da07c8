package engine

import (
	"context"
	"fmt"
	"math"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// attach keeps files that came with a session's prompt, or with a message in it.
func attach(tx *db.Tx, s api.SessionID, message api.MessageID, files []api.FileInput) error {
	for _, f := range files {
		err := tx.InsertAttachment(tx.Context(), queries.InsertAttachmentParams{
			ID: api.AttachmentID(tx.NewID()), SessionID: s, MessageID: message, Name: f.Name, Type: api.FileType(f.Data),
			Size: int64(len(f.Data)), Data: f.Data, At: db.Micros(tx.Now),
		})
		if err != nil {
			return fmt.Errorf("keep a file of session %s: %w", s, err)
		}
	}
	return nil
}

// attachAgain gives the files of a prompt or a message to a session that goes on with it.
func attachAgain(tx *db.Tx, to, from api.SessionID, message api.MessageID) error {
	files, err := attachmentsOf(tx.Context(), tx, from, message, message)
	if err != nil {
		return err
	}
	for _, f := range files {
		n, err := tx.CopyAttachment(tx.Context(), queries.CopyAttachmentParams{ID: api.AttachmentID(tx.NewID()), SessionID: to, At: db.Micros(tx.Now), Of: f.ID})
		if err == nil && n != 1 {
			err = fmt.Errorf("%d rows", n)
		}
		if err != nil {
			return fmt.Errorf("keep file %s for session %s: %w", f.ID, to, err)
		}
	}
	return nil
}

// attachmentsOf are the files of a session that came with the messages of a range, the prompt being
// 0.
func attachmentsOf(ctx context.Context, q queries.Querier, s api.SessionID, from, to api.MessageID) ([]api.Attachment, error) {
	rows, err := q.AttachmentsOf(ctx, queries.AttachmentsOfParams{SessionID: s, FromMessage: from, ToMessage: to})
	if err != nil {
		return nil, fmt.Errorf("read the files of session %s: %w", s, err)
	}
	var out []api.Attachment
	for _, r := range rows {
		out = append(out, api.Attachment{ID: r.ID, SessionID: r.SessionID, MessageID: r.MessageID, Name: r.Name, Type: r.Type, Size: r.Size})
	}
	return out, nil
}

// Attachments lists the files that came with a session's prompt, and then those of its messages.
// Rights: as for its output. Errors: not_found; gone, when retention has removed its output.
func (e *Engine) Attachments(ctx context.Context, c Caller, id api.SessionID) (out []api.Attachment, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		if err := withOutput(ctx, tx, c, id); err != nil {
			return err
		}
		out, err = attachmentsOf(ctx, tx, id, 0, math.MaxInt64)
		return err
	})
	return out, err
}

// Attachment returns a file with its bytes. Rights and errors: as for [Engine.Attachments].
func (e *Engine) Attachment(ctx context.Context, c Caller, session api.SessionID, id api.AttachmentID) (out api.Attachment, data []byte, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		if err := withOutput(ctx, tx, c, session); err != nil {
			return err
		}
		r, err := tx.Attachment(ctx, queries.AttachmentParams{ID: id, SessionID: session})
		if db.None(err) {
			return db.NotFound("file")
		}
		if err != nil {
			return fmt.Errorf("read file %s: %w", id, err)
		}
		out = api.Attachment{ID: r.ID, SessionID: r.SessionID, MessageID: r.MessageID, Name: r.Name, Type: r.Type, Size: r.Size}
		data = r.Data
		return nil
	})
	return out, data, err
}
