package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Plain is an error's text for people: what Go itself says about expired time, a program's
// end, files and connections is put into words. To distinguish errors, check the error, not
// this text.
func Plain(err error) string {
	if words := plainOf(err); words != "" {
		return words
	}
	text := err.Error()
	for _, cause := range causes(err) {
		if raw := cause.Error(); raw != "" {
			text = strings.ReplaceAll(text, raw, Plain(cause))
		}
	}
	return text
}

// NewFailure makes a [Failure] of a code and its sentence; errors among args are [Plain].
func NewFailure(code, format string, args ...any) *Failure {
	for i, arg := range args {
		if err, ok := arg.(error); ok {
			args[i] = Plain(err)
		}
	}
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// plainOf puts the errors of Go's own library into words, "" for any other.
//
//nolint:errorlint // Plain goes down the tree itself, so each error is checked alone
func plainOf(err error) string {
	switch err {
	case context.DeadlineExceeded, os.ErrDeadlineExceeded:
		return "it took too long"
	case context.Canceled:
		return "it was cut short"
	case io.EOF, io.ErrUnexpectedEOF:
		return "it ended too early"
	case exec.ErrWaitDelay:
		return "something that it started kept its output open"
	}
	switch e := err.(type) {
	case *exec.ExitError:
		if s, ok := e.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			return fmt.Sprintf("it was ended by signal %d (%v)", int(s.Signal()), s.Signal())
		}
		return fmt.Sprintf("it ended with exit code %d", e.ExitCode())
	case *exec.Error:
		if e.Err == exec.ErrNotFound {
			return fmt.Sprintf("no %q is in the PATH", e.Name)
		}
		return fmt.Sprintf("%q can't be executed: %s", e.Name, Plain(e.Err))
	case *fs.PathError:
		return e.Path + ": " + Plain(e.Err)
	case *os.LinkError:
		return e.New + ": " + Plain(e.Err)
	case *os.SyscallError:
		return Plain(e.Err)
	case *url.Error:
		return Plain(e.Err)
	case *net.OpError:
		if e.Addr == nil {
			return Plain(e.Err)
		}
		return e.Addr.String() + ": " + Plain(e.Err)
	}
	if t, ok := err.(net.Error); ok && t.Timeout() && len(causes(err)) == 0 {
		return "it took too long" // the http package's own, which has no name
	}
	return ""
}

// causes are the errors that an error itself wraps.
func causes(err error) []error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()
	}
	if cause := errors.Unwrap(err); cause != nil {
		return []error{cause}
	}
	return nil
}
