// Package workertest has what tests of a worker need of the outside world: a proxy that loses,
// delays and forges what passes between worker and coordinator, and agents that misbehave on
// request. It knows neither the worker nor the coordinator, only their HTTP.
package workertest
