package api_test

import (
	"testing"

	"stint/api"
)

func TestIsThisMachine_NamesAndAddressesThatLeadNowhereElse(t *testing.T) {
	for _, c := range []struct {
		host              string
		machine, loopback bool
	}{
		{"127.0.0.1", true, true},
		{"127.9.0.1", true, true},
		{"::1", true, true},
		{"[::1]", true, true},
		{"::ffff:127.0.0.1", true, true},
		{"localhost", true, false},
		{"LocalHost.", true, false},
		{"stint.localhost", true, false},
		{"notlocalhost", false, false},
		{"localhost.example.org", false, false},
		{"::1%lo", false, false},
		{"0.0.0.0", false, false},
		{"192.168.0.1", false, false},
		{"127.1", false, false},
		{"", false, false},
	} {
		if got := api.IsThisMachine(c.host); got != c.machine {
			t.Errorf("IsThisMachine(%q) = %v", c.host, got)
		}
		if got := api.IsLoopback(c.host); got != c.loopback {
			t.Errorf("IsLoopback(%q) = %v", c.host, got)
		}
	}
}
