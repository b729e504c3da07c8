package server_test

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests and then looks for goroutines that they left behind. Run with a load
// to generate (see load_test.go), the binary is a client instead.
func TestMain(m *testing.M) {
	if spec := os.Getenv(loadVariable); spec != "" {
		os.Exit(runLoad(spec))
	}
	code := m.Run()
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
