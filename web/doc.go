// Package web draws the dashboard: pages, their live parts, the visual language and the files
// a browser needs.
//
// A page is one .templ beside one .go: the .go turns what an engine verb read, at one instant,
// into a view; the .templ draws it. The same component serves the whole page and its live
// update, so that they cannot differ.
//
// The package decides nothing. It knows neither SQL nor the rules of claims and schedules,
// reads no clock (each page is drawn for the instant at which it was read) and changes state
// only through the engine's verbs. Pages work with scripts off, except for live updates, and
// under a content policy that allows no inline script and no inline style.
package web
