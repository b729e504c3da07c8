//go:build !linux

package agenttest

// AsOrdinaryUser does nothing here: see its namesake for Linux.
func AsOrdinaryUser() {}
