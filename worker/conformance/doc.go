// Package conformance drives a coordinator through the contract that workers
// rely on, over HTTP alone, and judges it rule by rule: registration, beats,
// polls, racing claims, leases, late writers, results, questions and signals.
//
// It knows the wire and nothing else of the product: it uses none of its types
// and none of its client, so that it can judge any coordinator, and so that a
// worker can be written in any language from what the rules say. Everything it
// makes hangs on agents of its own, which need a label that only its own workers
// have; they are deleted in the end.
package conformance
