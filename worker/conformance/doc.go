// Package conformance drives a coordinator through the contract that workers rely on, only
// over HTTP, and judges it rule by rule: registration, beats, polls, racing claims, leases,
// late writers, results, questions and signals.
//
// It knows the wire format and nothing else of the product: it uses none of its types and not
// its client, so that it can judge any coordinator, and so that a worker can be written in any
// language from what the rules say. Everything it creates belongs to its own agents, which
// need a label that only its own workers have; they are deleted in the end.
package conformance
