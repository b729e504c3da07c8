package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// State stands for what is in the tree that a folder lies in: the commit checked out, and the
// files that differ from it or that git doesn't know, but for ignored ones and what a sandbox
// left there (see [Placeholder]). Two states are
// equal when nothing was changed, added, removed or committed in between.
//
// The errors are those of [Open].
func State(ctx context.Context, folder string, by Caller) (string, error) {
	r, err := Open(ctx, folder, by)
	if err != nil {
		return "", err
	}
	head, err := r.Commit(ctx, "")
	if err != nil && !errors.Is(err, ErrNoCommit) {
		return "", err
	}
	list, err := r.run(ctx, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=all", "--no-renames")
	if err != nil {
		return "", err
	}
	entries := slices.DeleteFunc(strings.Split(list, "\x00"), func(entry string) bool { return unlooked(r.Top, entry) })
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\x00%s", head, strings.Join(entries, "\x00"))
	for _, entry := range entries {
		if len(entry) < 4 {
			continue
		}
		// The list says that a file differs, not how: it may have differed before.
		if info, err := os.Lstat(filepath.Join(r.Top, entry[3:])); err == nil {
			fmt.Fprintf(sum, "%d %d %v\x00", info.Size(), info.ModTime().UnixNano(), info.Mode())
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
