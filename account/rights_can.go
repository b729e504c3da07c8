package account

import (
	"stint/api"
	"stint/queries"
)

// Over is a right over one's own sessions and the one that other people's require.
type Over struct{ own, others Right }

// What somebody may have a right to do with a session.
var (
	ToCancel  = Over{CancelOwn, CancelAny}
	ToRetry   = Over{RetryOwn, RetryAny}
	ToArchive = Over{ArchiveOwn, ArchiveAny}
	ToKeep    = Over{KeepOwn, KeepAny}
	ToAnswer  = Over{AnswerOwn, AnswerAny}
)

// MayTrigger refuses a caller who may not start sessions of a mode, in whatever way.
func (c Caller) MayTrigger(mode api.Mode) error {
	if mode == api.Local {
		return c.May(TriggerLocal)
	}
	return c.May(TriggerCloud)
}

// MayWith refuses a caller who has no such right over this session: a member has it over their
// own, an admin over any (contract 8.3). A retry starts it again, so for a cloud session it
// requires the right to start one.
func (c Caller) MayWith(s *queries.Session, right Over) error {
	if right == ToRetry && s.Mode == api.Cloud {
		return c.MayTrigger(s.Mode)
	}
	if s.TriggeredByUserID == c.UserID || s.OwnerUserID == c.UserID {
		return c.May(right.own)
	}
	return c.May(right.others)
}

// Pages ask the table of rights that the verbs themselves ask, so that nobody is offered what
// they would be refused.

// CanDeleteAgents reports whether the caller may delete agents.
func (c Caller) CanDeleteAgents() bool { return c.Can(DeleteAgents) }

// CanAudit reports whether the caller may read the audit.
func (c Caller) CanAudit() bool { return c.Can(Audit) }

// CanRun reports whether the caller may start sessions of agents of a mode.
func (c Caller) CanRun(mode api.Mode) bool { return c.MayTrigger(mode) == nil }

// CanCancel reports whether the caller may cancel and stop a session.
func (c Caller) CanCancel(s api.Session) bool { return c.CanWith(s, ToCancel) }

// CanRetry reports whether the caller may retry a session, or run it again.
func (c Caller) CanRetry(s api.Session) bool { return c.CanWith(s, ToRetry) }

// CanArchive reports whether the caller may archive a session.
func (c Caller) CanArchive(s api.Session) bool { return c.CanWith(s, ToArchive) }

// CanKeep reports whether the caller may keep a session from retention.
func (c Caller) CanKeep(s api.Session) bool { return c.CanWith(s, ToKeep) }

// CanAnswer reports whether the caller may answer a session's questions and
// write to it.
func (c Caller) CanAnswer(s api.Session) bool { return c.CanWith(s, ToAnswer) }

// CanWith is MayWith as a yes or no, for a session as pages have it.
func (c Caller) CanWith(s api.Session, right Over) bool {
	return c.MayWith(&queries.Session{Mode: s.Mode, TriggeredByUserID: s.TriggeredByUserID, OwnerUserID: s.OwnerUserID}, right) == nil
}
