package agent

import (
	"slices"

	"stint/worker/agent/cmdline"
)

// sideEffect says whether a command commits, pushes or publishes; connects, whether it talks to
// other machines. Both only know the usual programs: they find what rules are about, they don't
// confine. docs/agents.md says so.
func sideEffect(a cmdline.Act) cmdline.Answer {
	return among(a, effects)
}

func connects(a cmdline.Act) cmdline.Answer {
	return among(a, connecting)
}

// among looks for a program and its subcommand; without subcommands in the list any will do.
func among(a cmdline.Act, list map[string][]string) cmdline.Answer {
	best := cmdline.No
	for _, v := range a.Verbs() {
		subs, known := list[v.Name]
		switch {
		case known && (len(subs) == 0 || slices.Contains(subs, v.Sub)):
			return cmdline.Yes
		case known && cmdline.Unknown(v.Sub):
			best = cmdline.Maybe
		}
	}
	return best
}

var effects = map[string][]string{
	"git": {"commit", "push", "send-email", "request-pull", "merge", "rebase", "am", "tag"}, "gh": {"pr", "release", "issue", "repo", "api", "workflow"},
	"glab": {"mr", "release", "issue", "repo", "api"}, "hg": {"commit", "push"}, "jj": {"commit", "git"},
	"npm": {"publish", "unpublish", "deprecate"}, "pnpm": {"publish"}, "yarn": {"publish", "npm"}, "cargo": {"publish", "yank"}, "twine": {"upload"}, "gem": {"push"},
	"docker": {"push"}, "podman": {"push"}, "helm": {"push"}, "kubectl": {"apply", "create", "delete", "patch"}, "terraform": {"apply", "destroy"},
}

var connecting = map[string][]string{
	"git":  {"clone", "fetch", "pull", "push", "ls-remote", "submodule"},
	"curl": nil, "wget": nil, "ssh": nil, "scp": nil, "sftp": nil, "rsync": nil, "nc": nil, "ncat": nil, "netcat": nil, "socat": nil, "telnet": nil, "ftp": nil, "gh": nil, "glab": nil,
	"aria2c": nil, "http": nil, "https": nil,
}
