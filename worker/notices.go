package worker

import (
	"errors"
	"strings"

	"stint/api"
	"stint/worker/setup"
	"stint/worker/workflow"
)

// notices are what the owner of this worker should look at for an agent: a file of theirs that
// can't be used, a workflow file that is broken, or one that executes what they have not
// accepted. Neither a path nor a secret is included: a file may quote one.
func (p *Process) notices(slug string) []api.Notice {
	files := p.ownersFiles(slug)
	out := append(p.roomNotice(files.limits().root), p.unmaskedNotices(slug, &files)...)
	out = append(out, p.approvalsNotice(slug)...)
	if len(out) == 0 {
		return nil
	}
	secrets := secretsOf(p.source, p.token())
	for i := range out {
		out[i].Text = maskString(out[i].Text, secrets)
	}
	return out
}

func (p *Process) unmaskedNotices(slug string, files *ownersFiles) []api.Notice {
	if files.err != nil {
		return []api.Notice{{Code: api.NoticeSetupInvalid, Text: "The owner's file on this agent can't be used; its sessions are refused. See “stint worker doctor " + slug + "” on the worker's machine."}}
	}
	if !files.found || files.Workflow == "" {
		return nil
	}
	var out []api.Notice
	if files.flowErr != nil {
		text := "The workflow file can't be used: " + problems(files.flowErr)
		if files.flow.Path != "" {
			text += " The last good one holds."
		}
		out = append(out, api.Notice{Code: api.NoticeWorkflowInvalid, Text: api.Excerpt(text, 500)})
	}
	accepted, err := setup.Find(p.opts.StateDir).Accepted(slug)
	if err != nil || files.flow.Path == "" {
		return out
	}
	if _, changed, err := accepted.Follow(files.flow); err == nil && changed {
		out = append(out, api.Notice{Code: api.NoticeWorkflowChanged, Text: "The workflow file executes what you have not accepted; what you accepted last holds. Look at it with “stint worker trust " + slug + "” on the worker's machine."})
	}
	return out
}

// problems says what is wrong with a workflow file, without its path.
func problems(err error) string {
	bad := (*workflow.Error)(nil)
	if !errors.As(err, &bad) {
		return "it can't be read."
	}
	var lines []string
	for _, p := range bad.Problems {
		lines = append(lines, strings.TrimSuffix(p.String(), ".")+".")
	}
	return strings.Join(lines, " ")
}
