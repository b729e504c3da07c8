package conformance

import "slices"

// rule is one promise of the contract, and how it is tried.
type rule struct {
	name, says, contract string
	try                  func(t *trial)
}

// rules is everything that is judged, in the order of the contract.
var rules = slices.Concat(workerRules, pollRules, claimRules, leaseRules, writeRules, questionRules, finishRules, lapseRules, signalRules, wireRules)
