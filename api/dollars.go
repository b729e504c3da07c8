package api

import "fmt"

// Dollars writes an amount that is given in millionths of a US dollar. Small ones keep the
// digits that tell them from nothing.
func Dollars(micros int64) string {
	switch {
	case micros > 0 && micros < 100:
		return "under $0.0001"
	case micros > 0 && micros < 10_000:
		return fmt.Sprintf("$%.4f", float64(micros)/1e6)
	}
	return fmt.Sprintf("$%.2f", float64(micros)/1e6)
}
