// Package workspace gives each session a place to work in, and removes places that nobody
// needs any more.
//
// It owns the folder in which workspaces are made: their names, one record of each beside
// them, which git worktree and branch belongs to it, its four hooks, and the judgement of what
// may be removed. A workspace outlasts its session, even after the worker is killed; the same
// key finds it again. What could be lost is never removed. contract 10.5
//
// It must not know of claims, leases, policies or agents' protocols. Names and values that
// people chose reach hooks only in variables, and git never as options.
package workspace
