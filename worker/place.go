package worker

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"

	"stint/api"
	"stint/worker/proc"
	"stint/worker/workflow"
	"stint/worker/workspace"
)

// WorkspaceRoot is where a worker with a state directory makes workspaces when
// nobody says where.
func WorkspaceRoot(stateDir string) string { return filepath.Join(stateDir, "workspaces") }

// place is where a session works: a plain folder, which it has for itself unless
// its owner says that it is shared, or a workspace of its own.
type place struct {
	s     *session
	ws    *workspace.Workspace
	leave func() // gives a plain folder free
}

// enter finds or makes the session's place and has the plan lead there.
func (s *session) enter(ctx context.Context, p *plan, life proc.Record) (*place, outcome) {
	out := &place{s: s, leave: func() {}}
	spec := workspace.Spec{
		Mode: cmp.Or(p.workspace.Mode, workflow.ModeFolder), Repository: p.folder.real, Root: cmp.Or(p.workspace.Root, WorkspaceRoot(s.p.opts.StateDir)),
		Key: s.thread.String(), BaseBranch: p.workspace.BaseBranch, Directory: p.workspace.Directory,
		Agent: s.claim.Trusted.AgentSlug, Session: s.addr.Session.String(), Hooks: s.hooksOf(p, life),
	}
	if spec.Mode == workflow.ModeFolder && !p.shared {
		leave, err := s.p.folders.take(ctx, p.folder.real, func(other string) {
			s.status("Waiting: another session of this worker is in the folder " + other + ".")
		})
		if err != nil {
			return nil, s.ended(err, "")
		}
		out.leave = leave
	}
	ws, err := workspace.Prepare(ctx, spec)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		out.leave()
		return nil, s.ended(context.Cause(ctx), "")
	case errors.Is(err, workspace.ErrBusy):
		out.leave()
		return nil, released("workspace_busy")
	default:
		out.leave()
		s.log.Warn("no place to work in", "error", err)
		return nil, failed(workspace.Failure(err), "")
	}
	out.ws = ws
	if ws.Branch != "" {
		how := "Works in the worktree of branch "
		if ws.Created {
			how = "Works in a new worktree on branch "
		}
		s.status(how + ws.Branch + ".")
	}
	f, failure := openFolder(ws.Dir)
	if failure != nil {
		out.close(false)
		return nil, failed(failure, "")
	}
	if spec.Mode == workflow.ModeFolder {
		f.path = p.folder.path // as its owner names it
	}
	p.folder = f
	return out, outcome{}
}

// hooksOf are the workflow's scripts, run as the session's own processes: by its
// record, in its stages, at most until the lease's end.
func (s *session) hooksOf(p *plan, life proc.Record) workspace.Hooks {
	h := p.hooks
	return workspace.Hooks{
		Scripts: map[string]string{
			workspace.AfterCreate: h.AfterCreate, workspace.BeforeRun: h.BeforeRun,
			workspace.AfterRun: h.AfterRun, workspace.BeforeRemove: h.BeforeRemove,
		},
		Timeout: h.Timeout, Env: p.env, Values: sessionEnv(s.claim, s.p.client.URL(), s.p.client.Workspace(), promptFiles{}, 1),
		Start: func(ctx context.Context, spec proc.Spec, sink proc.Sink) (*proc.Process, error) {
			spec.Record, spec.Stages = life, s.p.stages
			spec.Deadline, _ = s.leash.deadline()
			return proc.Start(ctx, spec, sink)
		},
	}
}

// before runs the hook before a try; its failure, if it has one, is the try's.
func (p *place) before(ctx context.Context) (o outcome, again bool) {
	err := p.ws.BeforeRun(ctx)
	switch {
	case err == nil:
		return outcome{}, false
	case ctx.Err() != nil:
		return p.s.ended(context.Cause(ctx), ""), false
	}
	return failed(workspace.Failure(err), ""), true
}

// after runs the hook after a try, however that ended, while the claim lives.
func (p *place) after() {
	if cause := p.s.leash.cause(); cause != nil && !errors.Is(cause, errCancelled) && !errors.Is(cause, errStop) {
		return
	}
	err := p.ws.AfterRun(context.WithoutCancel(p.s.leash.ctx))
	if err == nil {
		return
	}
	p.s.log.Warn("the hook after the run did not do well", "error", err)
	if hook := (*workspace.HookError)(nil); errors.As(err, &hook) { // else the folder is gone, which the session says itself
		p.s.status("The hook after the run failed: " + hook.Error() + ".")
	}
}

// close gives the place free. done says that the session doesn't go on there.
func (p *place) close(done bool) {
	if p.ws != nil {
		if err := p.ws.Close(done); err != nil {
			p.s.log.Error("the workspace was not given up well", "error", err)
		}
	}
	p.leave()
}

// hiddenFrom are the paths that an agent in a folder must not read: the hidden
// ones, and where the folder lies inside one of them, all that is beside it.
func hiddenFrom(folder string, hidden []string) []string {
	var out []string
	for _, path := range hidden {
		rel, err := filepath.Rel(path, folder)
		if err != nil || !filepath.IsLocal(rel) {
			out = append(out, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil || rel == "." {
			continue // the owner has it work right there
		}
		for _, e := range entries {
			out = append(out, hiddenFrom(folder, []string{filepath.Join(path, e.Name())})...)
		}
	}
	return out
}

// self is what this process says of itself for an agent, as far as that depends on
// the owner's file: its name, the folder that sessions work in, and whether they
// don't meet there.
func (p *Process) self(a api.Agent) (name, folder string, alone bool) {
	t, failure := p.termsFor(api.Claim{Trusted: api.Trusted{
		AgentSlug: a.Slug, Type: a.Type, Run: a.Run, Instructions: a.Instructions, RunSetBy: p.me.UserID,
	}})
	if failure != nil { // its sessions will say why
		return p.opts.Name, a.Run.WorkFolder, p.opts.FolderShared
	}
	mode := cmp.Or(t.workspace.Mode, workflow.ModeFolder)
	return cmp.Or(t.name, p.opts.Name), t.workFolder, t.shared || mode != workflow.ModeFolder
}
