package web

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"stint/api"
)

// give sends a form with files, as a browser without scripts does.
func (s *fixture) give(path string, files map[string]string, form ...string) *httptest.ResponseRecorder {
	s.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for name, values := range formValues(form) {
		_ = w.WriteField(name, values[0])
	}
	for name, data := range files {
		part, err := w.CreateFormFile("files", name)
		if err != nil {
			s.Fatalf("make a part: %v", err)
		}
		_, _ = part.Write([]byte(data))
	}
	_ = w.Close()
	r := httptest.NewRequest(http.MethodPost, path, &body)
	r.Header.Set("Content-Type", w.FormDataContentType())
	res := httptest.NewRecorder()
	s.handler.ServeHTTP(res, r)
	return res
}

// Files are given with a message and with a run, are in the transcript, and are served so that
// nothing of them runs.
func TestFiles_GivenAndShown(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.converse(t)
	const picture = "\x89PNG\r\n\x1a\n..."
	wentTo(t, s.give(j.path()+"/say", map[string]string{"shot.png": picture}, "text", "See this", "key", "f1"), j.path())
	wentTo(t, s.give(j.path()+"/say", map[string]string{"x.html": "<script>x()</script>"}, "text", "And this", "key", "f2"), j.path())
	page := s.get(j.path()).Body.String()
	wholePage(t, j.path(), page)
	found := regexp.MustCompile(`href="(`+j.path()+`/files/att_[a-z0-9]{10})"`).FindAllStringSubmatch(page, -1)
	if len(found) != 2 || strings.Count(page, "<img src=\""+j.path()+"/files/") != 1 || !strings.Contains(page, "x.html") || !strings.Contains(page, `alt="shot.png"`) {
		t.Fatalf("the page shows %q", found)
	}
	for i, want := range []struct{ kind, how, body string }{
		{"image/png", "inline; filename=shot.png", picture}, {"application/octet-stream", "attachment; filename=x.html", "<script>x()</script>"},
	} {
		res := s.get(found[i][1])
		if h := res.Header(); h.Get("Content-Type") != want.kind || h.Get("Content-Disposition") != want.how || res.Body.String() != want.body ||
			h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: %v %q", want.how, h, res.Body)
		}
	}
	refused(t, s.give(j.path()+"/say", map[string]string{".hidden": "x"}, "text", "And that", "key", "f3"), "must be a file&#39;s name")
	big := strings.Repeat("x", api.MaxFilesSize+(4<<20))
	if res := s.give(j.path()+"/say", map[string]string{"big": big}, "text", "x", "key", "f4"); res.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a form that is too large is answered with %d", res.Code)
	}
	run := "/agents/" + j.agent.Slug + "/run"
	next := wentTo(t, s.give(run, map[string]string{"a.txt": "aaa"}, "prompt", "Look", "priority", "0", "key", "f5"), "/sessions/ses_")
	if again := wentTo(t, s.give(run, map[string]string{"a.txt": "aaa"}, "prompt", "Look", "priority", "0", "key", "f5"), "/sessions/ses_"); again != next {
		t.Errorf("pressed twice it began %s and %s", next, again)
	}
	if page := s.get(next).Body.String(); !strings.Contains(page, next+"/files/att_") || !strings.Contains(page, "a.txt") {
		t.Error("the run's page doesn't show its file")
	}
}
