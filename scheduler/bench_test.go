package scheduler

import (
	"strings"
	"testing"
	"time"
)

func BenchmarkParse(b *testing.B) {
	now := at("2026-01-01T00:00:00Z")
	for b.Loop() {
		if _, err := Parse("*/15 9-17 * * mon-fri", "Europe/Berlin", now); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for _, expr := range []string{"* * * * *", "30 2 * * *", "0 0 29 2 *", "@every 15m"} {
		b.Run(expr, func(b *testing.B) {
			s := must(b, expr, "America/New_York")
			anchor := at("2026-03-07T12:00:00Z")
			b.ReportAllocs()
			for b.Loop() {
				if s.Next(anchor, anchor).IsZero() {
					b.Fatal("never due")
				}
			}
		})
	}
}

func BenchmarkLatest(b *testing.B) {
	now := at("2026-03-07T12:00:00Z")
	for _, years := range []int{0, 1, 10} {
		b.Run([]string{0: "90s down", 1: "a year down", 10: "ten years down"}[years], func(b *testing.B) {
			for _, expr := range []string{"* * * * *", "* 2 * * *"} {
				b.Run(expr, func(b *testing.B) {
					s := must(b, expr, "America/New_York")
					anchor := now.Add(-90*time.Second).AddDate(-years, 0, 0)
					b.ReportAllocs()
					for b.Loop() {
						s.Latest(anchor, now)
					}
				})
			}
		})
	}
}

func BenchmarkWords(b *testing.B) {
	s := must(b, "0 0 13 * 5", "Europe/Berlin")
	for b.Loop() {
		s.Words()
	}
}

func BenchmarkWarnings(b *testing.B) {
	s := must(b, "30 2 13 * 5", "Europe/Berlin")
	now := at("2026-03-07T12:00:00Z")
	for b.Loop() {
		s.Warnings(now)
	}
}

// The longest expression there can be.
func BenchmarkParse_AtItsLimit(b *testing.B) {
	now := at("2026-01-01T00:00:00Z")
	expr := "0 0 * * " + strings.Repeat("0-7,", 120) + "1"
	for b.Loop() {
		if _, err := Parse(expr, "Europe/Berlin", now); err != nil {
			b.Fatal(err)
		}
	}
}
