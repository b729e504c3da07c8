// Package setup keeps what the owner of a worker says about it: one file of settings for each
// agent, and what the owner accepted of other people's content.
//
// It owns these files, their fields, defaults and checks, and the order in which they and a
// WORKFLOW.md count: the owner's file first. What it reads is executed, so it reads only files
// that nobody but the owner can write. contract 10.2
//
// It must not know of sessions, claims or processes, and starts nothing.
package setup
