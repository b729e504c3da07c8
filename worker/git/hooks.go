package git

// hookEvents are what git runs hooks at. From 2.54 on hooks are not only files in a folder: any
// setting hook.NAME.command with a hook.NAME.event is one, which core.hooksPath doesn't switch off
// (git-hook(1), git-config(1)).
var hookEvents = []string{
	"applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout", "post-commit", "post-index-change", "post-merge", "post-receive",
	"post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "pre-receive",
	"prepare-commit-msg", "proc-receive", "push-to-checkout", "reference-transaction", "sendemail-validate", "update",
}

// noHooks switches off whatever the user's own settings have for an event, whatever its name. A view
// knows no configured hook.
func noHooks() [][2]string {
	var off [][2]string
	for _, event := range hookEvents {
		off = append(off, [2]string{"hook." + event + ".enabled", "false"})
	}
	return off
}
