package git

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

const lockRetry = 20 * time.Millisecond

// lockTrees keeps other processes of ours from the list of a repository's trees until
// unlock is called: git reads the entry of each tree whenever it adds or lists one, and
// fails on one that another git is just writing. The lock is on the git directory itself,
// so that it leaves no file there. Whoever works in the repository can take it as well; so it is
// waited for as long as a few calls of ours may hold it, and then done without.
func lockTrees(ctx context.Context, common string, most time.Duration) (unlock func(), err error) {
	dir, err := os.Open(common)
	if err != nil {
		return nil, fmt.Errorf("lock the list of work trees: %w", err)
	}
	over := time.After(most)
	for {
		err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = dir.Close() }, nil
		}
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			_ = dir.Close()
			return nil, fmt.Errorf("lock the list of work trees: %w", err)
		}
		select {
		case <-ctx.Done():
			_ = dir.Close()
			return nil, fmt.Errorf("wait for the list of work trees: %w", context.Cause(ctx))
		case <-over:
			return func() { _ = dir.Close() }, nil
		case <-time.After(lockRetry):
		}
	}
}
