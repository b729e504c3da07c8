// Package api holds the product's words: the types that cross the wire, the eight statuses,
// the error codes, the OpenAPI document and a typed client.
//
// It is at the bottom of the import order and imports nothing of ours. It knows neither the
// store nor HTTP handlers; the only behaviour here is how a word is spelled, parsed and
// printed.
package api
