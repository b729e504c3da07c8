package sse_test

import (
	"testing"
	"time"

	"stint/web/sse"
)

func TestAppendEvent_KeepsEachLineOfTheDataInItsField(t *testing.T) {
	lines := sse.AppendRetry(nil, 2*time.Second)
	lines = sse.AppendEvent(lines, "7", "reset", []byte("{}"))
	lines = sse.AppendEvent(lines, "8.3", "", []byte("<p>\r\nid: 9\r\n\n</p>"))
	want := "retry: 2000\n\nid: 7\nevent: reset\ndata: {}\n\nid: 8.3\ndata: <p>\ndata: id: 9\ndata: \ndata: </p>\n\n"
	if string(lines) != want {
		t.Errorf("got %q, want %q", lines, want)
	}
}
