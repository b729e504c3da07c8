//go:build !linux

package web

import "time"

// threadCPU isn't known here; only the bounds of output and memory are checked.
func threadCPU() time.Duration { return 0 }

// processCPU isn't known here either.
func processCPU() time.Duration { return 0 }
