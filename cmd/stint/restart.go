package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// restartedEnv tells a process that it took over from one that had to restart
// itself: how many did so shortly before, and when the last one did.
const restartedEnv = "STINT_RESTARTED"

// restarted is what the environment tells of earlier restarts.
type restarted struct {
	count int
	at    time.Time
}

func readRestarted(text string) restarted {
	count, at, _ := strings.Cut(text, "@")
	n, err := strconv.Atoi(count)
	unix, errAt := strconv.ParseInt(at, 10, 64)
	if err != nil || errAt != nil {
		return restarted{}
	}
	return restarted{n, time.Unix(unix, 0)}
}

func (r restarted) String() string { return fmt.Sprintf("%d@%d", r.count, r.at.Unix()) }

const (
	restartForgets = 10 * time.Minute // a process that ran so long was well
	restartSlowest = 30 * time.Second
)

// next is the record for the process to come, and how long to wait before it
// starts: a disk that stays broken must not make us spin.
func (r restarted) next(now time.Time) (restarted, time.Duration) {
	if now.Sub(r.at) > restartForgets {
		return restarted{1, now}, 0
	}
	wait := min(time.Second<<min(r.count-1, 10), restartSlowest)
	return restarted{r.count + 1, now.Add(wait)}, wait
}

// restart replaces this process by a new one of the same binary on the same
// address. Contract 14: after a commit whose outcome is unknown the process
// starts again and recovers. It returns only if that fails or ctx ends.
func (c *cli) restart(ctx context.Context, addr string) error {
	r, wait := readRestarted(c.env(restartedEnv)).next(c.now())
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(wait):
	}
	self, err := ourProgram()
	if err != nil {
		return fmt.Errorf("find our own program to restart it: %w", err)
	}
	env := os.Environ()
	for i := len(env) - 1; i >= 0; i-- {
		if strings.HasPrefix(env[i], restartedEnv+"=") {
			env = append(env[:i], env[i+1:]...)
		}
	}
	args := append(os.Args[:len(os.Args):len(os.Args)], "--addr", addr)
	if err := syscall.Exec(self, args, append(env, restartedEnv+"="+r.String())); err != nil {
		return fmt.Errorf("restart %s: %w", self, err)
	}
	return nil
}

// respawn replaces this process by a new one with the same arguments, of the
// program that lies where ours was started from, which may be a newer one. It
// returns only if that fails.
func respawn() error {
	self, err := os.Executable()
	if err == nil {
		_, err = os.Stat(self)
	}
	if err != nil { // it was moved away: go on with what runs
		if self, err = ourProgram(); err != nil {
			return fmt.Errorf("find our own program to start it again: %w", err)
		}
	}
	if err := syscall.Exec(self, os.Args, os.Environ()); err != nil {
		return fmt.Errorf("start %s again: %w", self, err)
	}
	return nil
}

// ourProgram is the very file that runs, also after it was replaced by another.
func ourProgram() (string, error) {
	const link = "/proc/self/exe"
	if _, err := os.Stat(link); err == nil {
		return link, nil
	}
	return os.Executable()
}
