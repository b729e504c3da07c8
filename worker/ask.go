package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stint/api"
	"stint/worker/agent"
)

// Ask puts a question to people: it opens a prompt of the session and waits for
// the answer, as long as the claim lives, but no longer than promptHold: then the
// session is parked. A question that was answered while nobody held the claim is
// answered at once. contract 6.5
func (h *host) Ask(ctx context.Context, q agent.Question) (agent.Answer, error) {
	if a, ok := h.answeredBefore(q); ok {
		return a, nil
	}
	resume := h.turnClock.hold()
	defer resume()
	h.flush(ctx)
	if err := h.winding(); err != nil {
		return agent.Answer{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !h.asking(cancel) {
		return agent.Answer{}, h.winding()
	}
	defer h.asked()
	p, err := h.open(ctx, q)
	if err != nil {
		return agent.Answer{}, err
	}
	h.c.s.activity(api.ActivityAwaitingInput, "Asks: "+cut(q.Text, 1000)[0])
	return h.await(ctx, p, q)
}

// open opens the prompt. If an answer got lost the request is repeated; a prompt of an earlier
// process that asks the same is taken over, any other one withdrawn.
func (h *host) open(ctx context.Context, q agent.Question) (api.Prompt, error) {
	s := h.c.s
	in := h.promptOf(q)
	var wait backoff
	for {
		claim := s.claimID()
		got, err := s.patch(ctx, api.SessionPatch{UnderClaim: under(claim, s.p.instance), Status: api.AwaitingInput, Prompt: &in})
		if api.CodeOf(err) == api.CodePromptOpen {
			if got, err = s.p.client.Session(ctx, s.addr.Session); err == nil && got.Prompted != nil && !sameQuestion(*got.Prompted, in) {
				_, err = s.patch(ctx, api.SessionPatch{UnderClaim: under(claim, s.p.instance), Status: api.Active})
				if err == nil {
					continue
				}
			}
		}
		switch {
		case ctx.Err() != nil:
			return api.Prompt{}, context.Cause(ctx)
		case err == nil && got.Prompted != nil:
			return *got.Prompted, nil
		case err == nil: // it was closed in the same instant
			return api.Prompt{}, errors.New("the question was closed before anybody could answer")
		case api.CodeOf(err) == api.CodeConflict: // a stop was requested: the beat says so
			s.rec.wake()
			return api.Prompt{}, agent.ErrStopped
		case refusedForGood(err):
			return api.Prompt{}, fmt.Errorf("ask: %w", err)
		}
		s.log.Warn("a question can't be asked yet", "error", err)
		if !sleep(ctx, wait.next(api.RetryAfter(err)), s.retry) {
			return api.Prompt{}, context.Cause(ctx)
		}
	}
}

// await waits for the answer to an open prompt.
func (h *host) await(ctx context.Context, p api.Prompt, q agent.Question) (agent.Answer, error) {
	s := h.c.s
	hold := time.NewTimer(s.p.opts.PromptHold)
	defer hold.Stop()
	parked, park := context.WithCancelCause(ctx)
	defer park(nil)
	stop := context.AfterFunc(ctx, func() { park(context.Cause(ctx)) })
	defer stop()
	go func() {
		select {
		case <-hold.C:
			park(agent.ErrParked)
		case <-parked.Done():
		}
	}()
	var wait backoff
	for {
		got, err := s.p.client.AwaitAnswer(parked, s.addr.Session, p.ID, s.claimID(), s.p.clocks.Hold)
		if err = ours(err, got.ID, p.ID); err == nil && !got.ClosedAt.IsZero() {
			return h.answerOf(ctx, got, q)
		}
		if parked.Err() != nil {
			return agent.Answer{}, context.Cause(parked)
		}
		if err == nil {
			wait.reset()
			continue
		}
		if refusedForGood(err) {
			return agent.Answer{}, fmt.Errorf("wait for an answer: %w", err)
		}
		if !sleep(parked, wait.next(api.RetryAfter(err)), s.retry) {
			return agent.Answer{}, context.Cause(parked)
		}
	}
}

func (h *host) answerOf(ctx context.Context, p api.Prompt, q agent.Question) (agent.Answer, error) {
	if p.Resolution == api.PromptAnswered && p.Answer != nil {
		h.declined(p, q)
		h.stands(p, q)
		return h.told(*p.Answer, q), nil
	}
	h.c.s.rec.wake() // the session was stopped or cancelled, as the beat will say
	select {
	case <-ctx.Done():
		return agent.Answer{}, context.Cause(ctx)
	case <-time.After(h.c.s.p.clocks.Answer):
		return agent.Answer{}, agent.ErrStopped
	}
}

// answeredBefore looks for the question among those answered since the last finished turn.
// Each answer counts once.
func (h *host) answeredBefore(q agent.Question) (agent.Answer, bool) {
	p, ok := h.takeAnswered(promptOf(q, h.secrets.now()))
	if !ok {
		return agent.Answer{}, false
	}
	h.declined(p, q)
	h.stands(p, q)
	return h.told(*p.Answer, q), true
}

func (h *host) takeAnswered(in api.PromptInput) (api.Prompt, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.answered, func(p api.Prompt) bool { return p.Answer != nil && sameQuestion(p, in) })
	if i < 0 {
		return api.Prompt{}, false
	}
	p := h.answered[i]
	h.answered = slices.Delete(h.answered, i, i+1)
	return p, true
}

// promptOf is a question as the coordinator takes it, with the deadline that the owner set and
// what counts once it passes: never a yes.
func (h *host) promptOf(q agent.Question) api.PromptInput {
	in := promptOf(q, h.secrets.now())
	if h.c.plan.answerWithin <= 0 {
		return in
	}
	in.DeadlineSeconds, in.Default = int64(h.c.plan.answerWithin/time.Second), &api.Answer{}
	switch in.Kind {
	case api.PromptApproval:
		in.Default.Approved, in.Default.Text = new(bool), nobodyAnswered
	case api.PromptQuestions:
		in.Default.Choices = map[string]string{}
		for _, c := range in.Choices {
			if len(c.Options) > 0 && !c.Other {
				in.Default.Choices[c.ID] = c.Options[0]
			} else {
				in.Default.Choices[c.ID] = nobodyAnswered + " Decide yourself, and say what you assumed."
			}
		}
	default:
		in.Default.Text = nobodyAnswered + " Decide yourself, and say what you assumed."
	}
	return in
}

const nobodyAnswered = "Nobody answered in time."

func promptOf(q agent.Question, secrets [][]byte) api.PromptInput {
	masked := func(text string) string { return api.Excerpt(maskString(text, secrets), itemBytes-1024) }
	in := api.PromptInput{Kind: string(q.Kind), Text: masked(q.Text)}
	short := func(text string) string { return api.Excerpt(maskString(text, secrets), maxChoiceText) }
	if q.Kind == agent.AskApproval {
		in.Action = &api.AskedAction{Area: string(q.Action.Area), What: masked(q.Action.What), Tool: api.Line(maskString(q.Action.Tool, secrets)), Why: short(q.Why), Standing: patternsOf(q, secrets)}
	}
	for i, c := range q.Choices {
		one := api.Choice{ID: choiceID(i), Header: api.Excerpt(api.Line(maskString(c.Header, secrets)), maxHeader), Text: short(c.Text), Several: c.Several, Other: c.Other, Secret: c.Secret}
		for _, o := range c.Options {
			one.Options = append(one.Options, short(o))
		}
		for _, a := range c.About {
			one.About = append(one.About, api.OptionAbout{Description: short(a.Description), Preview: short(a.Preview)})
		}
		in.Choices = append(in.Choices, one)
	}
	return in
}

// The coordinator's limits, in bytes.
const (
	maxChoiceText = 4 << 10
	maxHeader     = 200
)

// choiceID names a question within its prompt: short and easy to type, whatever the program
// calls it.
func choiceID(i int) string { return fmt.Sprintf("q%d", i+1) }

func sameQuestion(p api.Prompt, in api.PromptInput) bool {
	if p.Kind != in.Kind || p.Text != in.Text || (p.Action == nil) != (in.Action == nil) || len(p.Choices) != len(in.Choices) {
		return false
	}
	for i, c := range p.Choices { // the programs generate new ids and reasons
		if c.Text != in.Choices[i].Text || !slices.Equal(c.Options, in.Choices[i].Options) {
			return false
		}
	}
	return p.Action == nil || p.Action.Area == in.Action.Area && p.Action.What == in.Action.What && p.Action.Tool == in.Action.Tool
}

// told is an answer in the program's own words. The answer to a secret question isn't repeated
// in anything that is reported of the session from now on.
func (h *host) told(a api.Answer, q agent.Question) agent.Answer {
	asked := api.Prompt{Answer: &a}
	for i, c := range q.Choices {
		asked.Choices = append(asked.Choices, api.Choice{ID: choiceID(i), Secret: c.Secret})
	}
	if said := secretAnswers(asked); len(said) > 0 {
		secrets := secretsOf(nil, said...)
		h.c.s.p.told.add(h.c.s.thread, secrets)
		h.secrets.add(secrets)
		h.c.s.out.hide(secrets)
		h.c.out.hide(secrets)
	}
	return toAnswer(a, q)
}

// secretAnswers returns the answers to the secret questions of prompts, and the words beside
// such answers.
func secretAnswers(prompts ...api.Prompt) (out []string) {
	for _, p := range prompts {
		if p.Answer == nil {
			continue
		}
		for _, c := range p.Choices {
			if said := p.Answer.Choices[c.ID]; c.Secret && !strings.HasPrefix(said, nobodyAnswered) {
				out = append(out, said, p.Answer.Text)
			}
		}
	}
	return out
}

func (h *host) mask(text string) string { return maskString(text, h.secrets.now()) }

// toAnswer is an answer in the program's own words for the questions.
func toAnswer(a api.Answer, q agent.Question) agent.Answer {
	out := agent.Answer{Approved: a.Approved != nil && *a.Approved, ForSession: a.ForSession, Text: a.Text}
	for i, c := range q.Choices {
		if out.Choices == nil {
			out.Choices = map[string]string{}
		}
		out.Choices[c.ID] = a.Choices[choiceID(i)]
	}
	return out
}
