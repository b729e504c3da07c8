// Package worker runs agents' sessions on this machine: it registers worker records, claims
// sessions, starts their commands and reports the results.
//
// It keeps the worker's side of every promise about execution:
//
//   - The claim context (claimcontext.go): whatever runs for a session ends before its
//     lease can, measured on the boot-time clock from before the request was
//     sent, even when the machine slept. contract 4.7
//   - Journal before effect (state.go): what is about to be claimed, started or
//     sent is on disk first, so that after a kill the worker's next process finds
//     every process and every result of the one before. contract 10.1
//   - The outbox (outbox.go): output and results are on disk before they are
//     sent and are sent until they are accepted or refused for good. contract 10.8
//   - The worker's owner decides what is executed (validate.go). contract 10.2
//
// It speaks to the coordinator only by HTTP, even when both share a process, and knows nothing
// of its store. Processes are package proc's business: this package gives it deadlines and
// takes its output.
package worker
