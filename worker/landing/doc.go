// Package landing looks at what a session left in a git tree, and lands it where its owner wants
// it: in a commit, on a remote, in a pull request, in the base branch, or nowhere. contract 16
//
// Everything is done with the hardened calls of package git. Nothing that the repository's own
// settings name is executed; what needs another machine is done in a repository of our own with
// the owner's own settings. A refusal leaves every file, branch and commit as it was, and says why
// without the machine's paths.
//
// It must not know of claims, sessions, the coordinator or workspaces' records.
package landing
