package engine

import (
	"context"

	"stint/api"
	"stint/queries"
)

// How many bytes things take, newest first.

func bytesOfSessions(ctx context.Context, q queries.Querier, before, n int64) ([]sized, error) {
	rows, err := q.BytesOfSessions(ctx, queries.BytesOfSessionsParams{Before: api.SessionID(before), N: n})
	return sizesOf(rows, err, func(r queries.BytesOfSessionsRow) sized { return sized{int64(r.ID), r.Bytes} })
}

func bytesOfOutputs(ctx context.Context, q queries.Querier, before, n int64) ([]sized, error) {
	rows, err := q.BytesOfOutputs(ctx, queries.BytesOfOutputsParams{Before: api.SessionID(before), N: n})
	return sizesOf(rows, err, func(r queries.BytesOfOutputsRow) sized { return sized{int64(r.SessionID), r.Bytes} })
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
