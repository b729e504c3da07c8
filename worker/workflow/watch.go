package workflow

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// Watcher follows one file. What counts is the content at the moment of each
// [Watcher.Current]; the system's notices only make changes known sooner, so that missing one
// does no harm. contract 10.5
type Watcher struct {
	path    string
	env     func(string) string
	log     *slog.Logger
	changed chan struct{}
	done    chan struct{}
	notices *fsnotify.Watcher // nil where the system gives none

	mu      sync.Mutex
	good    Workflow          // the last good one; guarded by mu
	have    bool              // good was read; guarded by mu
	seen    [sha256.Size]byte // the content that err is about; guarded by mu
	judged  bool              // seen was parsed; guarded by mu
	err     error             // of the file as it is now; guarded by mu
	warned  map[string]bool   // ignored fields that were reported; guarded by mu
	folders map[string]bool   // followed for notices; used by the goroutine alone, after Watch
	real    string            // where the file's links led; as folders
}

// Watch begins to follow a file, which need not exist yet. path and env are as for [Load].
// Each ignored field is reported to log once, as are changes that can't be used. Close ends
// it.
func Watch(path string, env func(string) string, log *slog.Logger) *Watcher {
	w := &Watcher{path: filepath.Clean(path), env: env, log: log, changed: make(chan struct{}, 1), done: make(chan struct{}), warned: map[string]bool{}, folders: map[string]bool{}}
	notices, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("changes of the workflow file are seen at the next poll only", "file", path, "error", err)
		close(w.done)
		return w
	}
	w.notices = notices
	w.follow()
	go w.listen()
	return w
}

// Changed delivers a token when the file may have changed since the last one.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Close ends the notices.
func (w *Watcher) Close() error {
	var err error
	if w.notices != nil {
		err = w.notices.Close()
	}
	<-w.done
	return err
}

// Current reads the file and returns the last good workflow. err says what is wrong with the
// file as it is now; then the workflow is an older one, or has no Path when there never was a
// good one.
func (w *Watcher) Current() (Workflow, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	content, err := read(w.path)
	if err != nil {
		w.fail(err)
		w.judged = false
		return w.good, w.err
	}
	sum := sha256.Sum256(content)
	if w.judged && sum == w.seen {
		return w.good, w.err
	}
	w.seen, w.judged = sum, true
	next, err := parse(w.path, content, w.env)
	if err != nil {
		w.fail(err)
		return w.good, w.err
	}
	if w.have {
		w.log.Info("the workflow file was read anew", "file", w.path)
	}
	w.good, w.have, w.err = next, true, nil
	for _, i := range next.Ignored {
		if !w.warned[i.Field] {
			w.warned[i.Field] = true
			w.log.Warn("a field of the workflow file has no effect", "field", i.Field, "reason", i.Reason, "file", w.path, "line", i.Line)
		}
	}
	return next, nil
}

// fail keeps an error and logs it if it is new. The caller holds mu.
func (w *Watcher) fail(err error) {
	if w.err == nil || w.err.Error() != err.Error() {
		w.log.Warn("the workflow file can't be used as it is", "error", err, "last good one kept", w.have)
	}
	w.err = err
}

// follow asks for notices of the folder of the file, and of the folder of what it links to:
// editors replace files, so following the file itself would end with the first save.
func (w *Watcher) follow() {
	want := map[string]bool{filepath.Dir(w.path): true}
	w.real, _ = filepath.EvalSymlinks(w.path) // empty while there is no file
	if w.real != "" {
		want[filepath.Dir(w.real)] = true
	}
	for dir := range w.folders {
		if !want[dir] {
			_ = w.notices.Remove(dir) // at worst already gone
			delete(w.folders, dir)
		}
	}
	for dir := range want {
		if w.folders[dir] {
			continue
		}
		if err := w.notices.Add(dir); err == nil {
			w.folders[dir] = true
		}
	}
}

func (w *Watcher) listen() {
	defer close(w.done)
	for {
		select {
		case e, ok := <-w.notices.Events:
			if !ok {
				return
			}
			if e.Op == fsnotify.Chmod {
				continue
			}
			if !w.concerns(e.Name) {
				continue
			}
			delete(w.folders, e.Name) // the folder itself was removed; it may come back as another
			w.follow()
			if w.differs() {
				w.tell()
			}
		case err, ok := <-w.notices.Errors:
			if !ok {
				return
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				w.log.Warn("a notice of the workflow file was lost", "error", fmt.Sprint(err))
			}
			w.tell()
		}
	}
}

// concerns reports whether a notice may be about the file: by its name, or because its links
// lead elsewhere now. Agents create and change files beside it all the time.
func (w *Watcher) concerns(name string) bool {
	if name == w.path || name == w.real || w.folders[name] {
		return true
	}
	real, _ := filepath.EvalSymlinks(w.path)
	return real != w.real
}

// differs reports whether the file isn't what Current saw last.
func (w *Watcher) differs() bool {
	content, err := read(w.path)
	w.mu.Lock()
	defer w.mu.Unlock()
	return err != nil || !w.judged || sha256.Sum256(content) != w.seen
}

func (w *Watcher) tell() {
	select {
	case w.changed <- struct{}{}:
	default: // one is waiting
	}
}
