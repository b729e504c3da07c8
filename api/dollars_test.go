package api

import "testing"

func TestDollars_TellSmallAmountsFromNothing(t *testing.T) {
	for micros, want := range map[int64]string{
		0: "$0.00", 1: "under $0.0001", 1_000: "$0.0010", 9_999: "$0.0100", 10_000: "$0.01", 2_500_000: "$2.50", 1_234_567_890: "$1234.57",
	} {
		if got := Dollars(micros); got != want {
			t.Errorf("%d is %q, want %q", micros, got, want)
		}
	}
}
