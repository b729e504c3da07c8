package traces

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"stint/api"
	"stint/engine"
)

// record makes the spans of a session: its own, and below it each wait, each claim and, below
// the claim that asked, each question.
func (t *Traces) record(l *engine.Life) {
	ctx, session := t.begin(context.Background(), "session "+l.Agent, l.CreatedAt, about(l)...)
	from := l.CreatedAt
	under := make([]context.Context, len(l.Claims))
	for i, c := range l.Claims {
		t.wait(ctx, from, c.GrantedAt, "claimed")
		var span trace.Span
		under[i], span = t.begin(ctx, "claim", c.GrantedAt,
			attribute.Int64("stint.claim.fence", c.Fence), attribute.String("stint.claim.closed_by", c.ClosedBy),
			attribute.String("stint.worker.mode", string(c.WorkerMode)))
		switch {
		case c.Lost():
			failed(span, c.ClosedBy)
		case c.Failed():
			code := l.ErrorCode
			if l.Status != api.Failed || i < len(l.Claims)-1 {
				code = c.ClosedBy // another try followed, and has the session's code
			}
			failed(span, code)
		}
		from = orEnd(c.ClosedAt, l)
		end(span, c.GrantedAt, from)
	}
	t.wait(ctx, from, l.EndedAt, "ended")
	for _, p := range l.Prompts {
		parent := ctx
		for i, c := range l.Claims {
			if !c.GrantedAt.After(p.AskedAt.Time) {
				parent = under[i]
			}
		}
		_, span := t.begin(parent, "prompt", p.AskedAt,
			attribute.String("stint.prompt.kind", p.Kind), attribute.String("stint.prompt.resolution", p.Resolution))
		end(span, p.AskedAt, orEnd(p.ClosedAt, l))
	}
	if l.Status == api.Failed {
		failed(session, l.ErrorCode)
	}
	end(session, l.CreatedAt, l.EndedAt)
}

// about are the attributes of a session: OpenTelemetry's for agents where the agent is a model's.
func about(l *engine.Life) []attribute.KeyValue {
	out := []attribute.KeyValue{
		attribute.String("stint.session.id", l.Session.String()),
		attribute.String("stint.thread.id", l.Thread.String()),
		attribute.String("stint.workspace", l.Workspace),
		attribute.String("stint.agent", l.Agent),
		attribute.String("stint.agent.type", string(l.AgentType)),
		attribute.String("stint.session.triggered_by", string(l.TriggeredBy)),
		attribute.String("stint.session.status", string(l.Status)),
		attribute.Int64("stint.session.attempt", l.Attempt),
	}
	if l.RetryOf != 0 {
		out = append(out, attribute.String("stint.session.retry_of", l.RetryOf.String()))
	}
	if l.Parent != 0 {
		out = append(out, attribute.String("stint.session.parent_id", l.Parent.String()))
	}
	if l.AgentType != api.TypeCommand {
		out = append(out,
			attribute.String("gen_ai.operation.name", "invoke_agent"),
			attribute.String("gen_ai.agent.name", l.Agent),
			attribute.String("gen_ai.conversation.id", l.Thread.String()),
			attribute.Int64("gen_ai.usage.input_tokens", l.Usage.InputTokens),
			attribute.Int64("gen_ai.usage.output_tokens", l.Usage.OutputTokens),
			attribute.Int64("stint.session.cost_micros", l.Usage.CostMicros),
		)
	}
	return out
}

func (t *Traces) begin(ctx context.Context, name string, at api.Time, with ...attribute.KeyValue) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, name, trace.WithTimestamp(at.Time), trace.WithAttributes(with...))
}

// wait is a span of waiting, unless it took no time, as between two claims of one transaction.
func (t *Traces) wait(ctx context.Context, from, to api.Time, until string) {
	if !to.After(from.Time) {
		return
	}
	_, span := t.begin(ctx, "wait", from, attribute.String("stint.wait.until", until))
	end(span, from, to)
}

// end ends a span; a clock that was set back gives it no length.
func end(span trace.Span, from, to api.Time) {
	if to.Before(from.Time) {
		to = from
	}
	span.End(trace.WithTimestamp(to.Time))
}

// orEnd is an instant, or the session's end where it has none.
func orEnd(at api.Time, l *engine.Life) api.Time {
	if at.IsZero() {
		return l.EndedAt
	}
	return at
}

func failed(span trace.Span, code string) {
	span.SetStatus(codes.Error, code)
	span.SetAttributes(attribute.String("error.type", code))
}
