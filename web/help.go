package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"

	"stint/api"
	"stint/docs"
)

// helpPage is one of the documents in the binary.
type helpPage struct {
	Name  string // the file's name without its extension
	Title string
	Body  string // HTML made from our own Markdown
}

// helpGroup is a heading of the help's index.
type helpGroup struct {
	title string
	names []string // of documents, in the order in which they are met
}

var helpGroups = []helpGroup{
	{"Every day", []string{"sessions", "schedules", "conversations", "changes", "states", "tasks", "notifications", "glossary"}},
	{"Agents and workers", []string{"agents", "safety", "workers", "workflow"}},
	{"Running a server", []string{"configuration", "service", "container", "upgrading", "backup", "retention", "doctor", "monitoring", "people", "sign-in", "proxy"}},
	{"For programs", []string{"mcp", "webhooks", "worker-protocol", "contract", "errors", "exit-codes"}},
	{"How it is made", []string{"architecture", "testing", "performance"}},
}

// pages are the documents of the group.
func (g helpGroup) pages(all []helpPage) []helpPage {
	var out []helpPage
	for _, name := range g.names {
		if i := slices.IndexFunc(all, func(p helpPage) bool { return p.Name == name }); i >= 0 {
			out = append(out, all[i])
		}
	}
	return out
}

// helpPages reads and converts the documents once; they can't change while the program runs.
var helpPages = sync.OnceValues(readHelp)

func readHelp() ([]helpPage, error) {
	documents, err := docs.All()
	if err != nil {
		return nil, err
	}
	md := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	var all []helpPage
	for _, d := range documents {
		var body bytes.Buffer
		if err := md.Convert(d.Body, &body); err != nil {
			return nil, fmt.Errorf("convert the document %s: %w", d.Name, err)
		}
		all = append(all, helpPage{Name: d.Name, Title: d.Title, Body: onThePage(body.String())})
	}
	return all, nil
}

var linkToFile = regexp.MustCompile(`<a href="([a-z-]+)\.md`)

// onThePage fits our own Markdown's HTML into the dashboard: the documents link to each other
// by file name, table heads name their columns, and what may be wider than the page can be
// scrolled with the keyboard.
func onThePage(body string) string {
	return linkToFile.ReplaceAllString(fitted.Replace(body), `<a href="/help/$1`)
}

// on is the document for the readers of a request.
func (p helpPage) on(ctx context.Context) string {
	return strings.ReplaceAll(p.Body, `<a href="/help/`, `<a href="`+Address(ctx, "/help/"))
}

var fitted = strings.NewReplacer("<th>", `<th scope="col">`, "<table>", `<table tabindex="0">`, "<pre>", `<pre tabindex="0">`)

func (v *visit) help() error {
	all, err := helpPages()
	if err != nil {
		return err
	}
	return v.page(http.StatusOK, Shell{Title: "Help", Prose: true}, helpIndex(all))
}

// helpOn shows one document.
func (v *visit) helpOn() error {
	all, err := helpPages()
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.Name == v.path("page") {
			return v.page(http.StatusOK, Shell{Title: p.Title + " · Help", Prose: true}, helpText(p))
		}
	}
	return api.Refuse(api.CodeNotFound, "There is no help page of that name.")
}

// llms is an index of what a program can read here, in the format of llmstxt.org.
func (v *visit) llms() error {
	all, err := helpPages()
	if err != nil {
		return err
	}
	var out strings.Builder
	at := func(path string) string { return Address(v.r.Context(), path) }
	fmt.Fprintf(&out, `# Stint

> One program that runs AI agents, or any command, on this machine, on a schedule or on demand, each run exactly once at a time.

An agent is what to run and when; a session is one run of it; a worker executes sessions; a claim is the live lease that lets
exactly one worker execute one session. Every request needs "Authorization: Bearer TOKEN".

## API

- [OpenAPI 3.1 document](%s): every route, parameter, status and error code
- [Reference](%s): the same, to be read

## Documents

`, at("/openapi.json"), at("/api/docs"))
	for _, p := range all {
		fmt.Fprintf(&out, "- [%s](%s)\n", p.Title, at("/help/"+p.Name+".txt"))
	}
	return v.text("text/plain; charset=utf-8", out.String())
}

// helpSource returns a document as it was written.
func (v *visit) helpSource() error {
	text, err := docs.Files.ReadFile(v.path("page") + ".md")
	if err != nil {
		return api.Refuse(api.CodeNotFound, "There is no help page of that name.")
	}
	return v.text("text/plain; charset=utf-8", string(text))
}

func (v *visit) text(kind, text string) error {
	v.Header().Set("Content-Type", kind)
	_, err := v.Write([]byte(text))
	if err != nil {
		v.web.log.Debug("write an answer", "error", err)
	}
	return nil
}
