package agent

import "slices"

// claudeSaid is what people said to a running turn: our id for it, and the host's.
type claudeSaid struct{ uuid, id string }

// steer hands what people said to the running turn. Claude Code takes it in after the next tool
// call, and repeats it then; where the turn ends before that, it begins another with it.
func (t *claudeTalk) steer() {
	for said, some := t.host.Urgent(); some; said, some = t.host.Urgent() {
		one := claudeSaid{NewID(), said.ID}
		t.said = append(t.said, one)
		t.write(one.uuid, said)
	}
}

// repeated takes what Claude Code repeats of our own as it takes it in.
func (t *claudeTalk) repeated(uuids ...string) {
	t.said = slices.DeleteFunc(t.said, func(s claudeSaid) bool {
		in := slices.Contains(uuids, s.uuid)
		if in {
			t.host.Took(s.id, true)
		}
		return in
	})
}

// about reports whether a result is about the running turn, or about something that ran in the
// background. Older versions don't say which turns a result is about.
func (t *claudeTalk) about(r claudeResult) bool {
	return len(r.Asked) == 0 || slices.Contains(r.Asked, t.turn) ||
		slices.ContainsFunc(t.said, func(s claudeSaid) bool { return slices.Contains(r.Asked, s.uuid) })
}

// goesOn reports whether the program begins another turn by itself, with what it hasn't taken in
// yet. To the host that is still the same turn.
func (t *claudeTalk) goesOn(r claudeResult) bool {
	t.repeated(r.Asked...)
	if len(t.said) == 0 {
		return false
	}
	t.turn = t.said[0].uuid
	return true
}
