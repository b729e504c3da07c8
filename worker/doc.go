// Package worker runs agents' sessions on this machine: it registers worker
// records, claims sessions, starts their commands and reports what became of
// them.
//
// It owns the worker's side of every promise about execution:
//
//   - The claim context (leash.go): whatever runs for a session ends before its
//     lease can, measured on the boot-time clock from before the request was
//     sent, also when the machine slept. contract 4.7
//   - Journal before effect (state.go): what is about to be claimed, started or
//     sent is on disk first, so that a killed worker's next life finds every
//     process and every result of the one before. contract 10.1
//   - The outbox (outbox.go): output and results are on disk before they are
//     sent and are sent until they are accepted or refused for good. contract 10.8
//   - What is executed is the worker owner's to say (validate.go). contract 10.2
//
// It speaks to the coordinator by HTTP alone, also when both share a process,
// and knows nothing of its store. Processes are package proc's business: this
// package tells it deadlines and takes its output.
package worker
