package workspace

import (
	"errors"
	"fmt"
	"io/fs"

	"stint/api"
	"stint/worker/git"
)

// The codes of [Failure] (contract 10.2).
const (
	CodeHookFailed        = "HOOK_FAILED"
	CodeFolderNotFound    = "WORK_FOLDER_NOT_FOUND"
	CodeFolderNotReadable = "WORK_FOLDER_NOT_READABLE"
)

// Failure puts an error of this package into words for the session that it ends. ErrBusy isn't
// one: the session can be given back.
func Failure(err error) *api.Failure {
	var hook *HookError
	switch {
	case errors.As(err, &hook):
		text := fmt.Sprintf("The hook %s of the workflow file ended with exit code %d.", hook.Hook, hook.ExitCode)
		if hook.Err != nil {
			text = fmt.Sprintf("The hook %s of the workflow file did not finish: %s.", hook.Hook, hook.why())
		}
		if hook.Excerpt != "" {
			text += "\n" + hook.Excerpt
		}
		return &api.Failure{Code: CodeHookFailed, Message: text}
	case errors.Is(err, git.ErrNoCommit):
		return api.NewFailure(CodeFolderNotFound, "The worktree's base was not found in the repository: %v.", err)
	case errors.Is(err, git.ErrNoRepository), errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrMoved):
		return api.NewFailure(CodeFolderNotFound, "The workspace can't be made or found: %v.", err)
	}
	return api.NewFailure(CodeFolderNotReadable, "The workspace can't be used: %v.", err)
}
