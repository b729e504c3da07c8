// Package workflow reads WORKFLOW.md: YAML front matter that says how sessions are run, and
// below it the template of the prompt. The format is OpenAI Symphony's; a file written for
// that is read unchanged. contract 10.5
//
// It owns the file's meaning: the supported fields with their defaults, which other fields are
// ignored and why, the variables of the template, and the digest of the parts that decide what
// is executed. A [Workflow] is a value that never changes; a running session keeps the one
// that it began with, whatever happens to the file.
//
// It must not know of sessions, agents, approvals or processes. It executes nothing, and no
// text that is put into a template has any effect on what a field says.
package workflow
