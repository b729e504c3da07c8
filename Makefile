# What a contributor runs. Needs Go, a C compiler (for the race detector) and make; everything else is fetched by version.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The packages that test, bench and cover look at: make test PKG=./engine/...
PKG ?= ./...

# The tools are built without cgo: sqlc then takes its PostgreSQL parser as wasm and builds in half the time.
tool   := CGO_ENABLED=0 go tool -modfile=tools/go.mod
# … and so is the linter, but it looks at the code as the tests build it, or the SQLite driver is compiled once more.
linter  = $$(CGO_ENABLED=0 go tool -modfile=tools/lint/go.mod -n golangci-lint)

# SQLite itself is C turned into Go, and the race detector makes it 37 times slower. Its own memory is nothing we could
# race on, so it alone is built without; races in our code are still seen. Not so the driver around it: it uses sync.Map,
# whose generic parts the linker takes from any one package, and without the detector in them each sync.Map of the
# program would seem to be a race.
race := -race -gcflags='modernc.org/sqlite/lib=-race=false'

.PHONY: help generate check fmt lint vet quick test test-agents test-litestream bench cover build packages clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

generate: ## write the generated files again: queries/*.sql.go, web/*_templ.go, api/openapi.*.gz
	$(tool) sqlc generate
	$(tool) templ generate -log-level warn
	go generate ./api

check: ## say whether the generated code is fresh and the queries keep the house rules
	tools/check-queries
	$(tool) sqlc diff
	$(tool) templ generate -check -log-level warn

fmt: ## format Go and templ files
	$(linter) fmt
	$(tool) templ fmt -log-level warn .

vet: ## go vet
	go vet -tags agents,litestream,screenshots ./...

lint: vet ## go vet, golangci-lint and the rules for queries
	tools/check-queries
	@echo 'golangci-lint (the first time it is compiled, which takes some minutes)'
	GOGC=400 $(linter) run

# Garbage may grow under the race detector and in linters: there is memory enough. Tests of memory run without.

# How many packages are tested side by side: as many as there are processors. One more makes reads wait so long under the
# race detector that the store ends them.
side := $(shell getconf _NPROCESSORS_ONLN)

# The long lives of the engine and of the whole program are short under the race detector, and whole in a run without it.
# Tables of one request after the other, scripts of many processes, browsers, and what counts, hashes or walks through slots
# for long on one goroutine run without it alone: little races there.
lives := Week_|Linearizable_
tables := Kill_|RealCoordinator_|Access_|Document_|OpenAPI_|Body_|Base_|Pages_|APIDocs_|Script|Browser_|Check_EveryRule|Guide_|Example_|Hook_|Upgrade_|MCP_(Rights|Tasks|ARun|Answers|Briefing|Scopes)|Task_|Examine_|Rules_
counts := Simulation_|Property_|Guesses_|Held_WhoHasLeft|Password_|OAuth_Guessed|PowerCut_|Restart_OverTheSlot|AutoPause_|Tick_|CatchUp_|Overlap_|ClockBack_|Output_F|Renderers_|Oracle_|BrokenCoordinators_WithoutADefect|Prune_|Findings_|Restored_|Sessions_APage|Damage_OneRow|Migrate_Killed
alone := $(lives)|$(tables)|$(counts)

quick: ## vet, and test what your change touches, in about a minute
	tools/quick '$(alone)'

test: ## run all tests with the race detector; installs on Debian what they need beside Go
	tools/ensure-chromium
	tools/ensure-helpers
	GOGC=400 go test $(race) -skip '^Test($(tables)|$(counts))' -shuffle=on -p $(side) -timeout 25m $(PKG)
	go test -run '^Test($(alone))' -p $(side) -timeout 10m $(sort $(dir $(shell grep -rlE '^func Test($(alone))' --include=*_test.go .)))

# The packages with tests of the tag agents. They run the real programs, so without the race detector, whose slowness
# would only show in waiting for them; go test already had it on the same code.
AGENTS_PKG ?= ./worker/agent ./worker ./cmd/stint

# What of them is left out: CI leaves out most of what drives opencode, which computes for six seconds at each start
# whatever its settings are, and part of the switches.
AGENTS_SKIP ?= ^$$

test-agents: ## drive the real Claude Code, Codex, opencode and Gemini CLI, of pinned versions from npm, with a model of our own; MCP conformance
	tools/with-agents go test -tags agents -run Real -skip '$(AGENTS_SKIP)' -parallel 4 -count 1 -timeout 10m $(AGENTS_PKG)
	tools/with-agents go test -tags agents -run TestConformance_ToMCP -count 1 -timeout 5m ./cmd/stint # as whoever started it: the suite is in their folder

# Not in CI: building it takes as long as a tenth of everything else.
test-litestream: ## kill the server beside the real Litestream, built from the module proxy, and restore its copy
	CGO_ENABLED=0 GOBIN=$(CURDIR)/bin/tools go install github.com/benbjohnson/litestream/cmd/litestream@v0.5.18
	PATH="$(CURDIR)/bin/tools:$$PATH" go test -tags litestream -run TestLitestream -count 1 -v -timeout 5m ./cmd/stint

screenshots: ## picture every page in both themes and three widths into dist/screenshots, to be looked at
	tools/ensure-chromium
	STINT_SCREENSHOTS='$(CURDIR)/dist/screenshots' go test -tags screenshots -run TestScreenshots -count 1 -timeout 10m ./web

bench: ## run the benchmarks, without the race detector
	go test -run '^$$' -bench . -benchmem -timeout 60m $(PKG)

cover: ## write cover.out and cover.html, print the total
	tools/ensure-chromium
	go test -coverpkg=./... -coverprofile=cover.out -timeout 25m $(PKG)
	go tool cover -html=cover.out -o cover.html
	go tool cover -func=cover.out | tail -n 1

# Templates that are inlined into each other are three times as large and hardly quicker: web goes without.
build: ## build bin/stint, one static file
	CGO_ENABLED=0 go build -trimpath -gcflags=stint/web=-l -ldflags '-s -w' -o bin/stint ./cmd/stint

# Its module is too large to be among the tools: it is built when it is asked for.
goreleaser := CGO_ENABLED=0 go run github.com/goreleaser/goreleaser/v2@v2.15.1

packages: ## build archives, .deb and .rpm from what is here into dist/, as a release does; as root, install and remove the .deb
	if git remote get-url origin >/dev/null 2>&1; then $(goreleaser) check; fi # it asks where releases go
	$(goreleaser) release --snapshot --clean --skip=sbom
	[ "$$(id -u)" -ne 0 ] || tools/test-packages

clean: ## remove what the targets above leave behind
	rm -rf bin dist cover.out cover.html
