package worker

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"slices"

	"stint/api"
	"stint/worker/places"
	"stint/worker/proc"
	"stint/worker/setup"
	"stint/worker/workflow"
	"stint/worker/workspace"
)

// WorkspaceRoot is where a worker with a state directory makes workspaces when
// nobody says where.
func WorkspaceRoot(stateDir string) string { return filepath.Join(stateDir, "workspaces") }

// workplace is where a session works: a plain folder, which it has to itself unless its owner
// says that it is shared, or a workspace of its own.
type workplace struct {
	s     *session
	ws    *workspace.Workspace
	leave func() // frees a plain folder
	noted landPlace
	// leaveRepository says that the session is in its owner's repository no more; nil = it never was.
	leaveRepository func(context.Context)
}

// enter finds or makes the session's place and points the plan to it.
func (s *session) enter(ctx context.Context, p *plan) (*workplace, outcome) {
	out := &workplace{s: s, leave: func() {}}
	spec := workspace.Spec{
		Mode: cmp.Or(p.workspace.Mode, workflow.ModeFolder), Repository: p.folder.real, Root: cmp.Or(p.workspace.Root, WorkspaceRoot(s.p.opts.StateDir)),
		Key: s.thread.String(), BaseBranch: p.workspace.BaseBranch, Directory: p.workspace.Directory,
		Agent: s.claim.Trusted.AgentSlug, Session: s.addr.Session.String(), Hooks: s.hooksOf(p),
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
	if errors.Is(err, workspace.ErrBusy) { // perhaps only our own clean-up looks at it
		s.p.makesWay(ctx)
		ws, err = workspace.Prepare(ctx, spec)
	}
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
	s.worksIn(spec.Mode, ws.Dir)
	if ws.Said != "" {
		s.status(ws.Said)
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
	out.notes(ctx, workspaceSpec{spec.Mode, spec.Root, spec.Key})
	s.place = out
	return out, outcome{}
}

// worksIn shows the owner of a local session where it works, unless that is the agent's work
// folder.
func (s *session) worksIn(mode, dir string) {
	if mode == workflow.ModeFolder {
		dir = ""
	}
	if s.claim.Session.Mode == api.Local && s.claim.Session.WorkPath != dir {
		s.report(entryPatch, api.SessionPatch{WorkPath: &dir})
	}
}

// hooksOf are the workflow's scripts, run as the session's own processes.
func (s *session) hooksOf(p *plan) workspace.Hooks {
	h := p.hooks
	return workspace.Hooks{
		Scripts: map[string]string{
			workspace.AfterCreate: h.AfterCreate, workspace.BeforeRun: h.BeforeRun,
			workspace.AfterRun: h.AfterRun, workspace.BeforeRemove: h.BeforeRemove,
		},
		Timeout: h.Timeout, Env: p.env, Values: sessionEnv(s.claim, s.p.client.URL(), s.p.client.Workspace(), promptFiles{}, 1),
		Start: func(ctx context.Context, spec proc.Spec, sink proc.Sink) (*proc.Process, error) {
			spec.Stages = s.p.stages
			return s.launch(ctx, spec, sink)
		},
	}
}

// before runs the hook before a try; if it fails, the try fails.
func (p *workplace) before(ctx context.Context) (o outcome, again bool) {
	err := p.ws.BeforeRun(ctx)
	switch {
	case err == nil:
		return outcome{}, false
	case ctx.Err() != nil:
		return p.s.ended(context.Cause(ctx), ""), false
	}
	return failed(workspace.Failure(err), ""), true
}

// after runs the hook after a try, however that ended, while the claim holds.
func (p *workplace) after() {
	if cause := p.s.claimContext.cause(); cause != nil && !errors.Is(cause, errCancelled) && !errors.Is(cause, errStop) {
		return
	}
	err := p.ws.AfterRun(context.WithoutCancel(p.s.claimContext.ctx))
	if err == nil {
		return
	}
	p.s.log.Warn("the hook after the run did not do well", "error", err)
	if hook := (*workspace.HookError)(nil); errors.As(err, &hook) { // else the folder is gone, which the session says itself
		p.s.status("The hook after the run failed: " + hook.Error() + ".")
	}
}

// close frees the place. done says that the session doesn't continue there.
func (p *workplace) close(done bool) {
	if p.leaveRepository != nil {
		p.leaveRepository(context.WithoutCancel(p.s.claimContext.ctx))
	}
	if p.ws != nil {
		if err := p.ws.Close(done); err != nil {
			p.s.log.Error("the workspace was not given up well", "error", err)
		}
	}
	p.leave()
}

// hidden are the paths that no agent of this process may read: everything of Stint's, and the
// files with variables that any agent of this user gets.
func (p *Process) hidden() ([]string, error) {
	all, err := p.opts.Places.All()
	all = slices.Concat(places.WithTargets(slices.Concat([]string{p.opts.StateDir}, p.opts.Hidden)), all)
	return slices.Concat(all, setup.EnvFiles(all)), err
}

// self is the part of what this process says about itself for an agent that depends on the
// owner's files.
type self struct {
	name    string
	folder  string      // that sessions work in
	shared  bool        // several may at once
	updates *api.Labels // what it leaves of the agent's task updates; nil = all
	land    api.LandLevel
}

// sameWork reports whether two say the same of how sessions are run.
func (s self) sameWork(o self) bool {
	s.name = o.name
	return reflect.DeepEqual(s, o)
}

func (p *Process) self(a api.Agent) self {
	t, failure := p.runSettingsFor(api.Claim{Trusted: api.Trusted{
		AgentSlug: a.Slug, Type: a.Type, Run: a.Run, Instructions: a.Instructions, RunSetBy: p.me.UserID,
	}})
	if failure != nil { // its sessions will say why
		return self{name: p.opts.Name, folder: a.Run.WorkFolder, shared: p.opts.FolderShared, land: api.LandOff}
	}
	mode := cmp.Or(t.workspace.Mode, workflow.ModeFolder)
	return self{cmp.Or(t.name, p.opts.Name), t.workFolder, t.shared || mode != workflow.ModeFolder, t.taskUpdates, t.land}
}
