package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"stint/api"
	"stint/engine"
)

// workerForm is what worker_form.templ draws.
type workerForm struct {
	filled
	id    api.WorkerID
	name  string // the current one
	agent string
}

func (v *visit) editWorker() error {
	id, err := v.workerID()
	if err != nil {
		return err
	}
	w, err := v.managed(id, verbEdit)
	if err != nil {
		return err
	}
	return v.drawWorkerForm(http.StatusOK, w, url.Values{
		"name": {w.Name}, "instructions": {w.Instructions}, "labels": {joined(w.Labels)}, "maxConcurrent": {strconv.FormatInt(w.MaxConcurrent, 10)},
	}, nil)
}

func (v *visit) drawWorkerForm(status int, w api.Worker, typed url.Values, bad map[string]string) error {
	f := workerForm{filled: filled{typed, bad}, id: w.ID, name: w.Name, agent: w.AgentSlug}
	return v.page(status, Shell{Title: "Edit " + w.Name, Place: "workers"}, workerFormPage(f))
}

func (v *visit) saveWorker() error {
	id, err := v.workerID()
	if err != nil {
		return err
	}
	ctx, form := v.r.Context(), v.r.PostForm
	var bad map[string]string
	_, err = v.web.engine.EditWorker(ctx, v.caller, id, func(in *api.WorkerEdit) error {
		if bad = fillWorker(in, form); len(bad) > 0 {
			also(bad, engine.CheckWorkerEdit(*in))
			return api.Refuse(api.CodeInvalid, "Some fields are not valid.")
		}
		return nil
	})
	if err == nil {
		return v.to(workerURL(id), "Saved")
	}
	if len(bad) == 0 {
		var ok bool
		if bad, ok = fieldErrors(err); !ok {
			return err
		}
	}
	w, err := v.web.engine.Worker(ctx, v.caller, id)
	if err != nil {
		return err
	}
	return v.drawWorkerForm(http.StatusUnprocessableEntity, w, form, bad)
}

// fillWorker reads the form into a worker, over its previous values. The engine has the rules.
func fillWorker(in *api.WorkerEdit, form url.Values) map[string]string {
	bad := map[string]string{}
	if form.Has("name") {
		in.Name = form.Get("name")
	}
	if form.Has("instructions") {
		in.Instructions = strings.ReplaceAll(form.Get("instructions"), "\r\n", "\n")
	}
	if form.Has("labels") {
		in.Labels = words(form.Get("labels"))
	}
	if typed := strings.TrimSpace(form.Get("maxConcurrent")); typed != "" {
		n, err := strconv.ParseInt(typed, 10, 64)
		switch {
		case err != nil:
			bad["maxConcurrent"] = "must be a whole number"
		case n == 0: // to the engine this means that nothing was set
			bad["maxConcurrent"] = "must be at least 1"
		}
		in.MaxConcurrent = n
	}
	return bad
}
