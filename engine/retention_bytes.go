package engine

import (
	"context"
	"maps"
	"slices"

	"stint/api"
	"stint/queries"
)

// How many bytes things take, newest first.

func bytesOfSessions(ctx context.Context, q queries.Querier, before, n int64) ([]sized, error) {
	rows, err := q.BytesOfSessions(ctx, queries.BytesOfSessionsParams{Before: api.SessionID(before), N: n})
	return sizesOf(rows, err, func(r queries.BytesOfSessionsRow) sized { return sized{int64(r.ID), r.Bytes} })
}

// bytesOfOutputs counts what goes with a session's output, too: the files that people gave it, and
// those that it changed.
func bytesOfOutputs(ctx context.Context, q queries.Querier, before, n int64) ([]sized, error) {
	sums := map[int64]int64{}
	add := func(some []sized, err error) error {
		for _, s := range some {
			sums[s.id] += s.bytes
		}
		return err
	}
	outputs, err := q.BytesOfOutputs(ctx, queries.BytesOfOutputsParams{Before: api.SessionID(before), N: n})
	if err := add(sizesOf(outputs, err, func(r queries.BytesOfOutputsRow) sized { return sized{int64(r.SessionID), r.Bytes} })); err != nil {
		return nil, err
	}
	attachments, err := q.BytesOfAttachments(ctx, queries.BytesOfAttachmentsParams{Before: api.SessionID(before), N: n})
	if err := add(sizesOf(attachments, err, func(r queries.BytesOfAttachmentsRow) sized { return sized{int64(r.SessionID), r.Bytes} })); err != nil {
		return nil, err
	}
	files, err := q.BytesOfFiles(ctx, queries.BytesOfFilesParams{Before: api.SessionID(before), N: n})
	if err := add(sizesOf(files, err, func(r queries.BytesOfFilesRow) sized { return sized{int64(r.SessionID), r.Bytes} })); err != nil {
		return nil, err
	}
	// One of the n newest of all is among the n newest of each kind that it has something of.
	out := make([]sized, 0, len(sums))
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(sums))) {
		out = append(out, sized{id, sums[id]})
	}
	return out[:min(int64(len(out)), n)], nil
}

func bytesOfEvents(ctx context.Context, q queries.Querier, before, n int64) ([]sized, error) {
	rows, err := q.BytesOfEvents(ctx, queries.BytesOfEventsParams{Before: api.SessionID(before), N: n})
	return sizesOf(rows, err, func(r queries.BytesOfEventsRow) sized { return sized{int64(r.SessionID), r.Bytes} })
}

func bytesOfAudit(ctx context.Context, q queries.Querier, before, n int64) ([]sized, error) {
	rows, err := q.BytesOfAudit(ctx, queries.BytesOfAuditParams{Before: before, N: n})
	return sizesOf(rows, err, func(r queries.BytesOfAuditRow) sized { return sized{r.Seq, r.Bytes} })
}

func bytesOfDeliveries(ctx context.Context, q queries.Querier, before, n int64) ([]sized, error) {
	rows, err := q.BytesOfDeliveries(ctx, queries.BytesOfDeliveriesParams{Before: api.DeliveryID(before), N: n})
	return sizesOf(rows, err, func(r queries.BytesOfDeliveriesRow) sized { return sized{int64(r.ID), r.Bytes} })
}

func sizesOf[R any](rows []R, err error, of func(R) sized) ([]sized, error) {
	out := make([]sized, 0, len(rows))
	for _, r := range rows {
		out = append(out, of(r))
	}
	return out, err
}
