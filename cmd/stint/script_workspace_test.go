package main

import (
	"context"

	"github.com/rogpeppe/go-internal/testscript"

	"stint/worker/workflow"
	"stint/worker/workspace"
)

func makeWorkspace(ts *testscript.TestScript, _ bool, args []string) {
	w, err := workspace.Prepare(context.Background(), workspace.Spec{
		Mode: workflow.ModeWorktree, Root: ts.MkAbs(args[0]), Repository: ts.MkAbs(args[1]), Key: args[2], Agent: "reviewer", Session: args[3],
		Hooks: workspace.Hooks{Env: []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME")}},
	})
	ts.Check(err)
	ts.Check(w.Close(len(args) < 5))
}
