package engine

import "stint/api"

// What pages offer is asked of the table of rights that the verbs ask
// themselves, so that nobody is offered what he would be refused.

// CanDeleteAgents reports whether the caller may delete agents.
func (c Caller) CanDeleteAgents() bool { return c.can(mayDeleteAgents) }

// CanAudit reports whether the caller may read the audit.
func (c Caller) CanAudit() bool { return c.can(mayAudit) }

// CanRun reports whether the caller may start sessions of agents of a mode.
func (c Caller) CanRun(mode api.Mode) bool { return c.mayTrigger(mode) == nil }

// CanCancel reports whether the caller may cancel and stop a session.
func (c Caller) CanCancel(s api.Session) bool { return c.canWith(s, toCancel) }

// CanRetry reports whether the caller may retry a session, or run it again.
func (c Caller) CanRetry(s api.Session) bool { return c.canWith(s, toRetry) }

// CanArchive reports whether the caller may archive a session.
func (c Caller) CanArchive(s api.Session) bool { return c.canWith(s, toArchive) }
