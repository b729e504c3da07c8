package main

import (
	"bytes"
	"log/slog"
	"net/url"
	"strings"
	"testing"
)

// Somebody who starts Stint in a terminal without a display is shown the link with which the
// owner gets in, under the one name that browsers know the server by.
func TestUp_WithoutADisplayPrintsTheSetUpLink(t *testing.T) {
	var said bytes.Buffer
	c := newCLI()
	c.err, c.talks, c.errLook = &said, true, styles{}
	c.env = func(string) string { return "" }
	c.flags.dataDir = t.TempDir()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	k, err := c.open(t.Context(), serverFlags{addr: "127.0.0.1:0"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.close(); err != nil {
			t.Error(err)
		}
	})
	if err := c.welcome(t.Context(), k, upFlags{}, ""); err != nil {
		t.Fatal(err)
	}
	var link *url.URL
	for word := range strings.FieldsSeq(said.String()) {
		if strings.HasPrefix(word, "http") {
			if link, err = url.Parse(word); err != nil {
				t.Fatal(err)
			}
		}
	}
	if link == nil || link.Path != "/setup" || link.Fragment == "" || link.Hostname() != "stint.localhost" {
		t.Errorf("it says %s", said.String())
	}
}
