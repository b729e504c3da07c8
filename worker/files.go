package worker

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"stint/api"
	"stint/worker/agent"
)

// files are what people gave with a session's prompt and messages, as this worker has fetched them.
// They lie in a temporary folder of the worker's, outside its state, which agents must not read; only
// the worker's user can read them, and they are gone with the session. contract 15.7
type files struct {
	p       *Process
	session api.SessionID
	log     *slog.Logger

	mu   sync.Mutex
	dir  string                          // "" = none was fetched; guarded by mu
	here map[api.AttachmentID]agent.File // guarded by mu
}

func newFiles(p *Process, session api.SessionID, log *slog.Logger) *files {
	return &files{p: p, session: session, log: log, here: map[api.AttachmentID]agent.File{}}
}

// filesOf are the files of messages.
func filesOf(all []api.Message) (out []api.Attachment) {
	for _, m := range all {
		out = append(out, m.Files...)
	}
	return out
}

// fetch brings files here, unless they are, and returns those that are. It waits for a coordinator
// that can't be reached; what is gone for good is left out, and the session says so.
func (f *files) fetch(ctx context.Context, list ...api.Attachment) []agent.File {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(list) > 0 && f.dir == "" {
		dir, err := f.p.filesFolder()
		if err == nil {
			dir, err = os.MkdirTemp(dir, f.session.String()+"-*") // 0700
		}
		if err != nil {
			f.log.Error("the folder of a session's files can't be made", "error", err)
			return nil
		}
		f.dir = dir
	}
	return f.bring(ctx, f.dir, list)
}

// fetchInto is fetch into a folder of the caller's, which is made. It returns the folder, "" when
// there are no files.
func (f *files) fetchInto(ctx context.Context, dir string, list ...api.Attachment) string {
	if len(list) == 0 {
		return ""
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		f.log.Error("the folder of a session's files can't be made", "error", err)
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bring(ctx, dir, list)
	return dir
}

func (f *files) bring(ctx context.Context, dir string, list []api.Attachment) (out []agent.File) {
	for _, a := range list {
		if _, is := f.here[a.ID]; !is {
			if err := f.bringOne(ctx, dir, a); err != nil {
				f.log.Warn("a file that came with it can't be brought here", "file", a.ID, "error", err)
				continue
			}
		}
		out = append(out, f.here[a.ID])
	}
	return out
}

func (f *files) bringOne(ctx context.Context, dir string, a api.Attachment) error {
	var wait backoff
	var data []byte
	for {
		var err error
		if data, err = f.p.client.Attachment(ctx, a.SessionID, a.ID); err == nil {
			break
		}
		if ctx.Err() != nil || refusedForGood(err) || !sleep(ctx, wait.next(api.RetryAfter(err)), nil) {
			return err
		}
	}
	// The coordinator has checked the name; what it lets through must not lead out of here either.
	path := filepath.Join(dir, filepath.Base(filepath.Clean("/"+a.Name)))
	if _, err := os.Lstat(path); err == nil || filepath.Dir(path) != dir {
		path = filepath.Join(dir, a.ID.String()+filepath.Ext(path))
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("write a file: %w", err)
	}
	f.here[a.ID] = agent.File{Name: a.Name, Path: path, Type: a.Type}
	return nil
}

// have are those of some files that are here.
func (f *files) have(list ...api.Attachment) (out []agent.File) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range list {
		if one, is := f.here[a.ID]; is {
			out = append(out, one)
		}
	}
	return out
}

// folder is where they are, "" while none was fetched.
func (f *files) folder() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dir
}

// remove removes them with the session.
func (f *files) remove() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dir != "" {
		_ = os.RemoveAll(f.dir) // the next start of the worker removes what is left
	}
	f.dir = ""
	clear(f.here)
}

// fetch brings here what came with what the first turn says, and returns it.
func (c *conversation) fetch(ctx context.Context) []agent.File {
	var list []api.Attachment
	said := c.s.claim.Conversation
	if !c.before.resumed || said == nil || !said.TurnEnded {
		list = c.s.claim.Untrusted.Files
	}
	if said != nil {
		list = slices.Concat(list, filesOf(said.Messages))
	}
	c.brief.files = c.s.files
	return c.s.files.fetch(ctx, list...)
}

const filesFact = "folder of people's files"

// filesFolder is this process's temporary folder for files. Its place is kept, so that the next
// process can remove what this one leaves.
func (p *Process) filesFolder() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filesDir != "" {
		return p.filesDir, nil
	}
	dir, err := os.MkdirTemp("", "stint-files-*") // 0700
	if err == nil {
		if dir, err = filepath.EvalSymlinks(dir); err == nil {
			err = p.state.setFact(filesFact, dir)
		}
	}
	if err != nil {
		return "", fmt.Errorf("make the folder of files: %w", err)
	}
	p.filesDir = dir
	return dir, nil
}

// sweepFiles removes the files that an earlier process left behind.
func (p *Process) sweepFiles() error {
	dir, err := p.state.fact(filesFact)
	if err != nil || dir == "" {
		return err
	}
	return os.RemoveAll(dir)
}
