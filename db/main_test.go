package db

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// children are what this test binary does when a test starts it again as a separate process;
// the variable's value names one.
var children = map[string]func() error{
	"write": writeUntilKilled,
	"open":  openAndClose,

	"back up": backUpUntilKilled,
	"restore": restoreUntilKilled,
	"migrate": migrateUntilKilled,
}

const childVariable = "STINT_DB_TEST_CHILD"

func TestMain(m *testing.M) {
	if child := children[os.Getenv(childVariable)]; child != nil {
		if err := child(); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
