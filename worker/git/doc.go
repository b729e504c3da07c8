// Package git is how a worker calls git: so that nothing in a repository is executed by it.
// Agents and strangers write to repositories, and git runs what their hooks, filters,
// file-system monitors and settings name. contract 10.7
//
// Git is started in one way only: in a view of the repository, a git directory of our own for that
// one call, which has its objects and branches and of its settings only how files are stored; with
// none of the user's or the system's settings, no network, no submodules, the repository
// named by its path and never found through a folder's contents, a time limit, and its own
// process group. Names that people chose never become options. The repository's own settings are
// read by calls that obey none of them. What has to reach another machine is done in a bare
// repository of our own in which the other's objects are found ([Scratch]).
//
// It must not know of sessions, workspaces or policies.
package git
