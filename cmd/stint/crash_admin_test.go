package main

import (
	"context"
	"fmt"

	"stint/api"
)

func (p *person) editAgent(l *serverRun) {
	slug := p.board.agent(p.rand)
	n := p.count
	text := p.next("edits")
	patch := map[string]any{"description": text, "prompt": text, "instructions": text, "maxConcurrent": 6 + n%9, "maxLapses": 3 + n%3}
	a, v := ask(l, "edit agent", nil, func(ctx context.Context) (api.Agent, error) {
		return l.client.EditAgent(ctx, slug, patch)
	})
	if v == told || v == unread {
		if a.Description != text || a.Prompt != text || a.Instructions != text {
			p.j.fault("agent %s was edited in part: %+v", slug, a)
		}
		p.j.sawAgent(a)
	}
}

func (p *person) pauseOrResume(l *serverRun) {
	slug := p.board.agent(p.rand)
	verb, call := "resume agent", func(ctx context.Context) (api.AgentChanged, error) { return l.client.ResumeAgent(ctx, slug) }
	if p.rand.IntN(5) == 0 {
		verb, call = "pause agent", func(ctx context.Context) (api.AgentChanged, error) {
			return l.client.PauseAgent(ctx, slug, p.next("pauses"))
		}
	}
	out, v := ask(l, verb, nil, call)
	if v == told || v == unread {
		p.j.sawAgent(out.Agent)
	}
}

// createAgent creates an agent that nobody serves. Its slug is its key.
func (p *person) createAgent(l *serverRun) {
	p.count++
	p.newAgent(l, fmt.Sprintf("%s-%d", p.name, p.count), 0)
}

func (p *person) newAgent(l *serverRun, slug string, known api.AgentID) {
	a, v := ask(l, "create agent", []api.Code{api.CodeSlugTaken}, func(ctx context.Context) (api.Agent, error) {
		return l.client.CreateAgent(ctx, map[string]any{"slug": slug, "description": slug, "run": map[string]any{"command": []string{"true"}}})
	})
	switch v {
	case unknown:
		p.pending = append(p.pending, func(l *serverRun) { p.newAgent(l, slug, known) })
	case unread:
		p.j.sawAgent(a)
		p.pending = append(p.pending, func(l *serverRun) { p.newAgent(l, slug, a.ID) })
	case told:
		if known != 0 {
			p.j.fault("agent %s was made twice", slug)
		}
		p.j.sawAgent(a)
	}
}

// read looks at sessions and an agent; what it reads must last too.
func (p *person) read(l *serverRun) {
	list, v := ask(l, "list", nil, func(ctx context.Context) (api.List[api.Session], error) {
		return l.client.Sessions(ctx, api.SessionFilter{}, api.Page{Limit: 5})
	})
	if v != told {
		return
	}
	for _, s := range list.Items {
		p.j.sawSession(s)
	}
	a, v := ask(l, "show agent", nil, func(ctx context.Context) (api.Agent, error) {
		return l.client.Agent(ctx, p.board.agent(p.rand))
	})
	if v == told {
		p.j.sawAgent(a)
	}
}
