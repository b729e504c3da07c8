package web

import "stint/api"

// approvalBy says who allowed something, to the worker's owner.
func (p workerPage) approvalBy(a api.StandingApproval) string {
	switch a.ApprovedBy {
	case 0:
		return "approved"
	case p.OwnerUserID:
		return "approved by you"
	}
	return "approved by somebody else"
}

func (v *visit) removeApproval() error {
	id, err := v.workerID()
	if err != nil {
		return err
	}
	if _, err := v.web.engine.RemoveApproval(v.r.Context(), v.caller, id, v.path("approval")); err != nil {
		return err
	}
	return v.to(workerURL(id)+"#approvals", "The worker is asked to remove it")
}
