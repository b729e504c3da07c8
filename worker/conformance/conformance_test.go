package conformance_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"stint/engine"
	"stint/server"
	"stint/server/servertest"
	"stint/worker/conformance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// coordinator is a real one that grants leases of four seconds: the kit has to renew some by
// hand, even with the race detector on a busy machine.
func coordinator(t *testing.T) *servertest.Server {
	t.Helper()
	return servertest.New(t, servertest.Options{
		Quiet:  true,
		Config: func(c *engine.Config) { c.MinLease = 4 * time.Second },
		Server: func(o *server.Options) { o.Limits = server.DefaultLimits(); o.Limits.Waits.Person = 1000 },
	})
}

func judge(t *testing.T, url, token string, only ...string) conformance.Report {
	t.Helper()
	report, err := conformance.Run(t.Context(), conformance.Target{URL: url, Token: token, Rules: only})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestRealCoordinator_KeepsEveryRule(t *testing.T) {
	t.Parallel()
	s := coordinator(t)
	report := judge(t, s.URL, s.Token)
	for _, v := range report.Verdicts {
		if !v.Passed {
			t.Errorf("%s (contract %s): %s", v.Rule, v.Contract, v.Why)
		}
		if v.Says == "" || v.Contract == "" {
			t.Errorf("%s doesn't say what it asks", v.Rule)
		}
	}
	if report.Failed != 0 || report.Passed != len(conformance.Rules()) || len(report.LeftOver) != 0 {
		t.Errorf("%d passed, %d failed, left over %v", report.Passed, report.Failed, report.LeftOver)
	}
}
