package engine

import (
	"context"
	"fmt"

	"stint/api"
	"stint/db"
)

const ruleCircle = "no tasks wait for each other in a circle"

// circles finds the tasks that can never be begun because what they wait for waits for them
// (contract 7.1): it takes away again and again those that wait for none that is left.
func (e *Engine) circles(ctx context.Context) (found []Violation, err error) {
	waitsFor, behind := map[api.TaskID]int{}, map[api.TaskID][]api.TaskID{}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		clear(waitsFor)
		clear(behind)
		rows, err := tx.Query(ctx, `SELECT task_id, blocker_id FROM task_blockers ORDER BY task_id, blocker_id`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var task, blocker api.TaskID
			if err := rows.Scan(&task, &blocker); err != nil {
				return err
			}
			waitsFor[task]++
			behind[blocker] = append(behind[blocker], task)
		}
		return rows.Err()
	})
	var free []api.TaskID
	for blocker := range behind {
		if waitsFor[blocker] == 0 {
			free = append(free, blocker)
		}
	}
	for len(free) > 0 {
		next := free[len(free)-1]
		free = free[:len(free)-1]
		for _, task := range behind[next] {
			if waitsFor[task]--; waitsFor[task] == 0 {
				free = append(free, task)
			}
		}
	}
	for task, n := range waitsFor {
		if n > 0 && len(found) < maxFound {
			found = append(found, Violation{Rule: ruleCircle, Detail: fmt.Sprintf("task %d is in or behind one", task)})
		}
	}
	return found, err
}
