package landing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"stint/api"
	"stint/worker/git"
)

// Loss is what would be gone with a workspace.
type Loss struct {
	Token string // stands for exactly this loss
	Tip   string // the commit of the branch that was made for the workspace; "" = there is none
	Text  string // a sentence
	Paths []string
}

// Loss says what would be lost if the workspace and its branch were removed now.
func (t *Tree) Loss(ctx context.Context) (l Loss, err error) {
	if t.place.Kind == api.PlaceFolder {
		return l, refuse(api.LandUnsupported, "This agent works in the folder itself, which is its owner's. Undo changes there by hand.")
	}
	work, err := t.work(ctx)
	if err != nil {
		return l, err
	}
	if work.Under != "" {
		return l, refuse(api.LandUnderway, "In the workspace %s is under way. End it first.", work.Under)
	}
	if t.place.Branch != "" {
		if l.Tip, err = t.repo.Branch(ctx, t.place.Branch); err != nil {
			return l, err
		}
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\x00%s\x00%s\x00%s\x00%s\x00%s\x00", work.Head, work.Branch, l.Tip, work.Stash, work.Modules, strings.Join(work.Ignored, "\x00"))
	files := 0
	err = t.status(ctx, func(e entry) error {
		files++
		if len(l.Paths) < mostNamed {
			l.Paths = append(l.Paths, Quoted(e.path))
		}
		return t.note(sum, e)
	})
	if err != nil {
		return l, err
	}
	commits, err := t.lone(ctx, work, l.Tip)
	if err != nil {
		return l, err
	}
	fmt.Fprintf(sum, "%d", commits)
	l.Token = hex.EncodeToString(sum.Sum(nil)[:8])
	l.Text = l.sentence(t.place.Branch, files, commits, work)
	return l, nil
}

func (t *Tree) work(ctx context.Context) (git.Work, error) {
	if t.place.Kind == api.PlaceClone {
		return t.repo.Whole(ctx)
	}
	return t.tree.Work(ctx, t.place.Branch)
}

// note adds a file to a sum as it is: that it differs is not enough, it may have differed before.
func (t *Tree) note(sum hash.Hash, e entry) error {
	fmt.Fprintf(sum, "%s\x00%t%t\x00", e.path, e.file, e.deleted)
	if info, err := os.Lstat(filepath.Join(t.top(), filepath.FromSlash(e.path))); err == nil {
		fmt.Fprintf(sum, "%d %d %v\x00", info.Size(), info.ModTime().UnixNano(), info.Mode())
	}
	return nil
}

// lone counts the commits that nothing else has.
func (t *Tree) lone(ctx context.Context, work git.Work, tip string) (int64, error) {
	var args []string
	if t.place.Kind == api.PlaceClone {
		args = []string{"--glob=refs/heads/*", "--glob=refs/tags/*"}
		if work.Head != "" {
			args = append(args, work.Head)
		}
		return t.count(ctx, append(args, "--not", "--glob=refs/remotes/*")...)
	}
	for _, id := range []string{work.Head, tip} {
		if id != "" && id != t.place.Landed {
			args = append(args, id)
		}
	}
	if len(args) == 0 {
		return 0, nil
	}
	args = append(args, "--not", "--exclude=refs/heads/"+t.place.Branch, "--glob=refs/heads/*", "--glob=refs/remotes/*", "--glob=refs/tags/*")
	if t.place.Landed != "" {
		args = append(args, t.place.Landed)
	}
	return t.count(ctx, args...)
}

func (l Loss) sentence(branch string, files int, commits int64, work git.Work) string {
	var lost []string
	for _, part := range []struct {
		n    int64
		word string
	}{{int64(files), "file that is not committed"}, {commits, "commit that nothing else has"}, {int64(len(work.Ignored)), "ignored file or folder"}} {
		switch {
		case part.n == 1:
			lost = append(lost, "1 "+part.word)
		case part.n > 1:
			lost = append(lost, strconv.FormatInt(part.n, 10)+" "+plural.Replace(part.word))
		}
	}
	if work.Stash != "" {
		lost = append(lost, "what was stashed")
	}
	if work.Modules != "" {
		lost = append(lost, "what is in the submodule "+Quoted(work.Modules))
	}
	what := "the workspace"
	if branch != "" {
		what += " and its branch " + Quoted(branch)
	}
	if len(lost) == 0 {
		return "Nothing is lost when " + what + " are removed."
	}
	return "Lost with " + what + ": " + strings.Join(lost, ", ") + "."
}

var plural = strings.NewReplacer("file that is", "files that are", "commit that nothing else has", "commits that nothing else has", "ignored file or folder", "ignored files or folders")
