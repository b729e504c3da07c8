package engine_test

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	flag.Parse()
	set := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { set[f.Name] = true })
	if !set["rapid.checks"] {
		// Each check opens a database and reads all of it after every step.
		if err := flag.Set("rapid.checks", strconv.Itoa(fewer(30)**soak)); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			os.Stderr.WriteString("goroutines are left: " + err.Error() + "\n")
			code = 1
		}
	}
	os.Exit(code)
}

// fewer is n, or a tenth of it with the race detector.
func fewer(n int) int {
	if raced {
		return max(1, n/10)
	}
	return n
}
