package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"stint/api"
)

// A server that leads round in its pages ends the gathering with an error that names the cursor.
func TestRestOf_EndsWhenACursorComesAgain(t *testing.T) {
	next := map[string]string{"": "a", "a": "b", "b": "a"}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"items":[1],"nextCursor":%q}`, next[r.URL.Query().Get("cursor")])
	}))
	t.Cleanup(s.Close)
	client, err := api.NewClient(api.ClientConfig{URL: s.URL, Token: "stint_user_x"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	k := api.RawCall{Method: http.MethodGet, Path: "tasks", Query: url.Values{}, Header: http.Header{}}
	_, err = restOf(ctx, client, k, []byte(`{"items":[0],"nextCursor":"a"}`))
	if err == nil || !strings.Contains(err.Error(), `repeats the cursor "a"`) {
		t.Errorf("it ends with %v", err)
	}
}
