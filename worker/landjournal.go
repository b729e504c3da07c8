package worker

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"stint/api"
)

// mostPlaces is of how many sessions it is kept where they left something.
const mostPlaces = 10_000

// setPlace keeps where a session left something that can be landed.
func (s *state) setPlace(id api.SessionID, place landPlace) error {
	text, err := json.Marshal(place)
	if err != nil {
		return fmt.Errorf("keep the session's place: %w", err)
	}
	return s.tx("keep the session's place", func(tx *sql.Tx) error {
		r, err := tx.ExecContext(durable(), "INSERT INTO places (session_id, place) VALUES (?1, ?2) ON CONFLICT (session_id) DO UPDATE SET place = excluded.place",
			id.String(), string(text))
		if err != nil {
			return err
		}
		newest, err := r.LastInsertId()
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(durable(), "DELETE FROM places WHERE id <= ?1", newest-mostPlaces)
		return err
	})
}

// placeOf is where a session left something; found is false when nothing is known of it.
func (s *state) placeOf(id api.SessionID) (place landPlace, found bool, err error) {
	var text string
	err = s.db.QueryRowContext(durable(), "SELECT place FROM places WHERE session_id = ?1", id.String()).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return place, false, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &place)
	}
	if err != nil {
		return place, false, fmt.Errorf("read the session's place: %w", err)
	}
	return place, true, nil
}

// landRow is the journal's line of a request to land.
type landRow struct {
	begun   bool // by this process or an earlier one
	head    string
	planned string
	report  string
}

func (s *state) landRow(id api.LandingID) (r landRow, err error) {
	err = s.db.QueryRowContext(durable(), "SELECT head, planned, report FROM landings WHERE landing_id = ?1", id.String()).Scan(&r.head, &r.planned, &r.report)
	if errors.Is(err, sql.ErrNoRows) {
		return landRow{}, nil
	}
	if err != nil {
		return landRow{}, fmt.Errorf("read the journal of landings: %w", err)
	}
	r.begun = true
	return r, nil
}

// landBegins journals that a request is about to be carried out.
func (s *state) landBegins(id api.LandingID, head string) error {
	return s.exec("journal the landing", "INSERT INTO landings (landing_id, head, planned, report) VALUES (?1, ?2, '', '') ON CONFLICT (landing_id) DO NOTHING", id.String(), head)
}

// landPlans journals which commit the base branch is about to get.
func (s *state) landPlans(id api.LandingID, commit string) error {
	return s.exec("journal the landing's commit", "UPDATE landings SET planned = ?2 WHERE landing_id = ?1", id.String(), commit)
}

// landEnds journals what came of a request.
func (s *state) landEnds(id api.LandingID, report string) error {
	return s.exec("journal the landing's end", `INSERT INTO landings (landing_id, head, planned, report) VALUES (?1, '', '', ?2)
		ON CONFLICT (landing_id) DO UPDATE SET report = excluded.report`, id.String(), report)
}

// landOver forgets a request whose answer was accepted or refused for good.
func (s *state) landOver(id api.LandingID) error {
	return s.exec("forget the landing", "DELETE FROM landings WHERE landing_id = ?1", id.String())
}
