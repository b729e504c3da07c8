package server_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/server/servertest"
)

// rawRequest sends the head of a request, and its body as far as it is given, on a separate
// connection.
func rawRequest(t *testing.T, d *fixture, head, body string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn := must((&net.Dialer{}).DialContext(t.Context(), "tcp", d.Addr()))
	t.Cleanup(func() { _ = conn.Close() })
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(1)
	}
	must(fmt.Fprintf(conn, "%s\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n%s", head, d.Addr(), d.Token, body))
	return conn, bufio.NewReader(conn)
}

// A client that never ends its body, and one that never reads its answer, are cut off: the
// stop is a clean one, and what may be sent again says so.
func TestShutdown_ClientsThatNeverEndDoNotMakeItFail(t *testing.T) {
	d := newFixture(t, servertest.Options{SmallBuffers: true})
	d.HTTP.WakeNow(100*time.Millisecond, 500*time.Millisecond)
	_, slow := rawRequest(t, d, "POST "+servertest.Base+"/agents/tidy/sessions HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue", "")
	if line := must(slow.ReadString('\n')); !strings.Contains(line, " 100 ") {
		t.Fatalf("the body isn't asked for: %q", line)
	}
	_ = must(slow.ReadString('\n'))
	_, _ = rawRequest(t, d, "POST /signin HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked", "5\r\nname=\r\n")
	c := d.running()
	for range 4 { // an answer that no buffer between the two can hold
		lines := make([]m, 12)
		for i := range lines {
			lines[i] = m{"kind": "text", "text": strings.Repeat("x", 60<<10)}
		}
		servertest.Must[api.ItemsAnswer](d.Server, 200, "POST", d.at(c.SessionID, "/items"), with(proof(c), m{"items": lines}))
	}
	_, deaf := rawRequest(t, d, "GET "+servertest.Base+"/sessions/"+c.SessionID.String()+"/items HTTP/1.1", "")
	_ = must(deaf.ReadString('\n')) // the answer has begun

	begun := time.Now()
	d.Stop() // fails the test when the server says that it failed
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the end took %v", took)
	}
	resp, err := http.ReadResponse(slow, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("the body that never ended was answered %s", resp.Status)
	}
	if log := d.Log.String(); !strings.Contains(log, "requests were cut off") {
		t.Error("the log doesn't tell of what was cut off")
	}
}
