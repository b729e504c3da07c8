package engine

import (
	"fmt"
	"math"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// spend books what a session has cost since its last report on its agent's day, and returns
// which limit is reached, in words; "" for none. The counter on the agent's row is what
// enforces the limit whatever else reports (contract 10.9, 14).
func (e *Engine) spend(tx *db.Tx, s *sessionRow, cost int64) (exceeded string, err error) {
	a, err := agentEvenDeleted(tx.Context(), tx, s.AgentID)
	if err != nil {
		return "", fmt.Errorf("read agent %s: %w", s.AgentID, err)
	}
	now := db.Micros(tx.Now)
	if cost > 0 {
		day := sumDay(&a, now)
		if err := db.One(tx.SpendOfAgent(tx.Context(), queries.SpendOfAgentParams{Day: day, Cost: cost, Most: mostSpent, ID: a.ID})); err != nil {
			return "", fmt.Errorf("book what agent %s spent: %w", a.ID, err)
		}
		if dayOver(&a, now) {
			a.SpentOnDay = 0
		}
		a.SpendDay, a.SpentOnDay = day, plus(a.SpentOnDay, cost)
	}
	switch {
	case a.SessionSpendLimit > 0 && s.CostMicros >= a.SessionSpendLimit:
		return fmt.Sprintf("The session has cost %s; the agent allows %s for one.", api.Dollars(s.CostMicros), api.Dollars(a.SessionSpendLimit)), nil
	case spentAll(&a, now):
		return fmt.Sprintf("The agent has spent %s today; its limit is %s a day.", api.Dollars(a.SpentOnDay), api.Dollars(a.DailySpendLimit)), nil
	}
	return "", nil
}

// carrySpend keeps what an agent has spent today when its zone, and with it its day, changes:
// a new zone lifts no limit (contract 10.9).
func carrySpend(tx *db.Tx, was, a *agentRow, now int64) error {
	day := sumDay(a, now)
	if was.SpentOnDay == 0 || dayOver(was, now) || was.SpendDay == day {
		return nil
	}
	return moveSpend(tx, a, day)
}

// moveSpend moves the sum to another day.
func moveSpend(tx *db.Tx, a *agentRow, day int64) error {
	a.SpendDay = day
	if err := db.One(tx.SpendDayOfAgent(tx.Context(), queries.SpendDayOfAgentParams{Day: day, ID: a.ID})); err != nil {
		return fmt.Errorf("carry what agent %s spent into its new day: %w", a.ID, err)
	}
	return nil
}

// mostSpent is the maximum of an agent's daily sum, whatever else is reported.
const mostSpent = math.MaxInt64

// plus adds what is not negative, up to mostSpent.
func plus(a, b int64) int64 {
	if a >= mostSpent-b {
		return mostSpent
	}
	return a + b
}

// dayOver reports whether the day of the sum in the agent's row is over. One later than today
// isn't: a clock that was set back lifts no limit.
func dayOver(a *agentRow, now int64) bool { return a.SpendDay < dayOf(a, now) }

// sumDay is the day on which spending now counts: today, or tomorrow if the clock was set back
// over midnight and tomorrow already has a sum. A clock that was further ahead was wrong, and
// a limit that was reached then must not hold until then.
func sumDay(a *agentRow, now int64) int64 {
	if tomorrow := dayOf(a, nextDay(a, now)); a.SpendDay == tomorrow {
		return tomorrow
	}
	return dayOf(a, now)
}

// sumEnds is when a reached limit on the agent's day stops holding.
func sumEnds(a *agentRow, now int64) int64 {
	end := nextDay(a, now)
	if sumDay(a, now) != dayOf(a, now) {
		end = nextDay(a, end)
	}
	return end
}

// spentAll reports whether the agent has spent what it may in this day of its zone.
func spentAll(a *agentRow, now int64) bool {
	return a.DailySpendLimit > 0 && a.SpentOnDay >= a.DailySpendLimit && !dayOver(a, now)
}

// spentToday is in millionths of a US dollar.
func spentToday(a *agentRow, now int64) int64 {
	if dayOver(a, now) {
		return 0
	}
	return a.SpentOnDay
}

func inZone(a *agentRow, now int64) time.Time {
	zone, err := time.LoadLocation(a.TimeZone)
	if err != nil {
		zone = time.UTC // the zone was checked when it was set; tzdata may have dropped it since
	}
	return time.UnixMicro(now).In(zone)
}

// dayOf is yyyymmdd.
func dayOf(a *agentRow, now int64) int64 {
	y, m, d := inZone(a, now).Date()
	return int64(y)*10_000 + int64(m)*100 + int64(d)
}

func nextDay(a *agentRow, now int64) int64 {
	t := inZone(a, now)
	y, m, d := t.Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, t.Location()).UnixMicro()
}

const maxSpend = 1_000_000 * 1_000_000 // millionths of a US dollar

func checkSpend(v *api.Invalid, in *api.AgentInput) {
	for _, limit := range []struct {
		field string
		n     int64
	}{{"sessionSpendLimitMicros", in.SessionSpendLimitMicros}, {"dailySpendLimitMicros", in.DailySpendLimitMicros}} {
		if limit.n < 0 || limit.n > maxSpend {
			v.Add(limit.field, fmt.Sprintf("must be 0 to %d millionths of a US dollar; 0 means no limit", maxSpend))
		}
	}
}
