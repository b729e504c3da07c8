package web

import (
	"io"
	"net/http"
	"slices"

	"stint/api"
	"stint/engine/taskfile"
)

func (v *visit) askExport() error {
	return v.page(http.StatusOK, Shell{Title: "Export tasks", Place: "tasks"}, exportPage(v.caller.CanEditTasks()))
}

// exportTasks writes all tasks, the oldest first, in the form that “stint task import” reads.
func (v *visit) exportTasks() error {
	var rows []taskfile.Row
	size := 0
	page := api.Page{Limit: exportedAtOnce}
	for {
		list, err := v.web.engine.Tasks(v.r.Context(), v.caller, api.TaskFilter{}, page)
		if err != nil {
			return err
		}
		for _, t := range list.Items {
			rows = append(rows, taskfile.RowOf(t))
			size += len(t.Title) + len(t.Description)
		}
		if size > taskfile.Longest {
			return api.Refuse(api.CodeTooLarge, "The tasks are over 64 MiB together: “stint task export” in a terminal writes them.")
		}
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			break
		}
	}
	slices.Reverse(rows)
	write, kind := taskfile.WriteJSON, "application/json"
	if v.path("format") == "csv" {
		write, kind = taskfile.WriteCSV, "text/csv; charset=utf-8"
	}
	v.Header().Set("Content-Type", kind)
	v.Header().Set("Content-Disposition", `attachment; filename="stint-tasks.`+v.path("format")+`"`)
	if err := write(io.Writer(v), rows); err != nil {
		v.web.log.Debug("a reader went away", "path", v.r.URL.Path, "error", err)
	}
	return nil
}
