// Package git is how a worker calls git: so that nothing in a repository is executed
// by it. Agents and strangers write to repositories, and git runs what their hooks,
// filters, file-system monitors and settings name. contract 10.7
//
// It owns the one way in which git is started: with its own few settings on top of
// the repository's, none of the user's or the system's, no network, no submodules, the
// repository named by path and never found by what lies in a folder, a time limit, and
// a process group of its own. Names that people chose are never options.
//
// It must not know of sessions, workspaces or policies.
package git
