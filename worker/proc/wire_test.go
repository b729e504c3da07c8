package proc

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"
)

func TestFailure_CrossesThePipeInWordsAndKeepsItsErrno(t *testing.T) {
	if f := failed("run /x", &exec.Error{Name: "x", Err: syscall.ENOEXEC}); !errors.Is(f, syscall.ENOEXEC) || f.Error() != "run /x: exec format error" {
		t.Errorf("with an errno it is %q", f)
	}
	f := failed("run /x", exec.ErrWaitDelay)
	if errors.Is(f, syscall.EIO) || errors.Unwrap(f) != nil || f.Error() != "run /x: something that it started kept its output open" {
		t.Errorf("without an errno it is %q and wraps %v", f, errors.Unwrap(f))
	}
}
