// Package mcp offers the coordinator's REST interface to programs that speak the Model Context
// Protocol, as tools and resources.
//
// It has one table of tools for every transport. A tool is one operation of the OpenAPI
// document: its schemas are read from there, its call is the operation's, made with the
// caller's own credentials, and its answer is the operation's answer, byte for byte. So no rule
// of the product is here; rights, limits and refusals are those of the REST interface. The
// package must not know how a request came in, or what the engine is.
package mcp
