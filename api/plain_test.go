package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func TestPlain_SaysWhatGoSaysInWords(t *testing.T) {
	ended := func(script string) error { return exec.CommandContext(t.Context(), "sh", "-c", script).Run() }
	_, missing := os.Stat("/no/such/file")
	_, unknown := exec.LookPath("no-such-program")
	for want, err := range map[string]error{
		"git status: it took too long":                   fmt.Errorf("git status: %w", context.DeadlineExceeded),
		"it was cut short":                               context.Canceled,
		"git: it ended with exit code 3":                 fmt.Errorf("git: %w", ended("exit 3")),
		"it was ended by signal 9 (killed)":              ended("kill -9 $$"),
		"start: no \"no-such-program\" is in the PATH":   fmt.Errorf("start: %w", unknown),
		"look: /no/such/file: no such file or directory": fmt.Errorf("look: %w", missing),
		"a: it took too long, b: /x: permission denied":  fmt.Errorf("a: %w, b: %w", os.ErrDeadlineExceeded, &fs.PathError{Op: "open", Path: "/x", Err: syscall.EACCES}),
		"it ended too early":                             &url.Error{Op: "Get", URL: "http://me:secret@x/", Err: fmt.Errorf("%w", io.ErrUnexpectedEOF)},
		"it is no exit status 1 of anybody's":            errors.New("it is no exit status 1 of anybody's"),
	} {
		if got := Plain(err); got != want {
			t.Errorf("%v is said as %q, want %q", err, got, want)
		}
	}
	f := NewFailure("CODE", "It failed: %v.", ended("exit 4"))
	if f.Code != "CODE" || f.Message != "It failed: it ended with exit code 4." {
		t.Errorf("the failure is %+v", f)
	}
	if text := Plain(fmt.Errorf("get: %w", &url.Error{Op: "Get", URL: "http://me:secret@x/", Err: context.DeadlineExceeded})); strings.Contains(text, "secret") {
		t.Errorf("a password is said: %q", text)
	}
}
