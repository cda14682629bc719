# make        build, and have a session with the demo agent
# make test   the tests that need nothing but Go and git, in a few minutes
# make help   the rest

GO      ?= go
BIN     := bin/duet-rpc
VERSION ?=
LDFLAGS := $(if $(VERSION),-X main.version=$(VERSION))
PREFIX  ?= $(HOME)/.local
TOOL    := $(GO) tool -modfile=.ci/tools/go.mod
# How tests are run. .ci/run counts them: GOTEST='… gotestsum … --'.
GOTEST  ?= $(GO) test
# One flavour of packages for the program and its tests, so that each is compiled once.
PURE    := CGO_ENABLED=0
FLAGS   := -trimpath
# make lint vets all packages once. go test would vet each package again before its tests.
NOVET   := -vet=off
# Some packages' tests wait, for processes above all: others use the processors meanwhile. The
# longest begin first.
ATONCE  := -p $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1))
LONGEST := ./internal/e2e/hub ./internal/e2e/clients ./internal/e2e/agents ./internal/e2e/wire ./cmd/duet-rpc ./internal/worktree ./internal/hub ./internal/executor
# Packages that start goroutines. Their tests are the tier race; RACED=./... tests all packages.
RACED   ?= $(shell grep -rlE '^\s+go [a-z]|\.Go\b' --include='*.go' --exclude='*_test.go' client frame handlers internal server | grep -vE '^internal/(bench|e2e)/' | xargs -n1 dirname | sort -u | sed 's,^,./,')
# The race detector watches what is written in Go, and not SQLite, which is translated from C
# and would be many times slower. It needs cgo. Without the setting each process that it
# watches waits a second before it exits.
RACE    := -race $(foreach package,modernc.org/sqlite/lib modernc.org/libc modernc.org/memory,-gcflags=$(package)=-race=false)
RACEENV := CGO_ENABLED=1 GORACE=atexit_sleep_ms=0
# Tests write their golden files instead of comparing them (internal/testkit).
UPDATE  := DUET_UPDATE_GOLDEN=1
# A number of inputs ends a round exactly. At a time's end (30s), Go 1.26 sometimes reports
# its own deadline as a failure: "context deadline exceeded", and no input.
FUZZTIME ?= 100000x
CRASHTIME ?= 10m
CHAOSTIME ?= 5m
FAULTSTIME ?= 5m
FAULTSPART ?= 1/1

.PHONY: run build install test race test-clients soak agents lint fmt fuzz cross bench load crash chaos faults docs generate vsix pictures clean help

run: build ## build, and have a session with the demo agent (the default)
	@dir=$$(mktemp -d) && export DUET_STATE_HOME="$$dir/state" && mkdir "$$dir/project" && \
	trap '$(BIN) --root "$$dir/project" daemon stop --force >/dev/null; rm -rf "$$dir"' EXIT && \
	answer=$$(test -t 0 || echo --yes) && \
	echo "duet-rpc prompt $$answer --agent demo \"Greet the README's reader\"" && \
	$(BIN) --root "$$dir/project" prompt $$answer --agent demo "Greet the README's reader" && \
	echo "— make deletes this session; begin one in your project with:" && \
	echo "$(abspath $(BIN)) prompt --agent demo \"Say hello\""

build: ## build bin/duet-rpc
	$(PURE) $(GO) build $(FLAGS) -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/duet-rpc

install: build ## put it into PREFIX/bin, ~/.local/bin
	install -d "$(DESTDIR)$(PREFIX)/bin"
	install -m 755 $(BIN) "$(DESTDIR)$(PREFIX)/bin/duet-rpc"
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) ;; *) echo 'for your shell'"'"'s profile: export PATH="$(PREFIX)/bin:$$PATH"' ;; esac

test: ## the default tier: Go tests that need nothing but Go and git
	$(PURE) $(GOTEST) $(FLAGS) $(NOVET) $(ATONCE) -timeout 40m $(LONGEST) ./...

race: ## the tests of the packages that start goroutines under the race detector; RACED=./... tests all
	$(RACEENV) $(GOTEST) $(FLAGS) $(NOVET) $(RACE) $(ATONCE) -skip '^TestScripts$$' -timeout 60m $(RACED)

test-clients: build ## installs real clients and agents (2.8 GB), and tests with them; DAY=--day: each once through a day
	.ci/install
	DUET_RPC_BIN=$(CURDIR)/$(BIN) .ci/test-clients $(DAY)

soak: build ## hours of chaos, kills, faults of the disk, races, fuzzing and crowds, limits of time and memory, pauses of editors, and make bench
	$(PURE) $(GOTEST) $(FLAGS) -tags soak -timeout 60m $$($(GO) list ./... | grep -vE '/internal/(chaos|crash|e2e(/.*)?)$$')
	$(PURE) $(GOTEST) $(FLAGS) -tags soak -p 1 -timeout 60m ./internal/e2e/... # one after the other: they measure
	$(MAKE) race RACED=./...
	$(MAKE) crash chaos faults fuzz bench
	$(MAKE) -C emacs perf DUET_RPC_BIN=$(CURDIR)/$(BIN)
	DUET_TEST_LONG_LINE=5000000 $(MAKE) -C emacs test ONLY=duet-visible-test-long-lines DUET_RPC_BIN=$(CURDIR)/$(BIN)
	cd vscode && npm ci --ignore-scripts --no-audit --no-fund && DUET_RPC_BIN=$(CURDIR)/$(BIN) npm run test:performance

agents: ## each scenario with each real agent; docs/agents-tested.md has what comes of it (DUET_UPDATE_GOLDEN=1 writes it)
	.ci/install
	$(PURE) $(GO) test $(FLAGS) -tags clients,soak ./internal/e2e/agents -run 'TestAgentDay|TestRealAgents|TestACPAgentDay' -count=1 -timeout 60m

# The tags add files: without them there are a few stubs more, which make test compiles.
lint: ## vet, staticcheck, gofumpt, layer rules, and the linters of emacs/ and vscode/
	$(PURE) $(GO) vet $(FLAGS) -tags clients,soak,lint ./...
	cd internal/bench && $(PURE) $(GO) vet ./...
	cd internal/pictures && $(PURE) $(GO) vet ./...
	$(TOOL) staticcheck -tags clients,soak,lint ./...
	@unformatted=$$($(TOOL) gofumpt -l .); \
	if [ -n "$$unformatted" ]; then echo "make fmt would change:"; echo "$$unformatted"; exit 1; fi
	$(PURE) $(GO) test $(FLAGS) $(NOVET) -tags lint ./internal/architecture
	.ci/lint-clients

fmt: ## format the Go code
	$(TOOL) gofumpt -w .

fuzz: ## a round of each fuzz target of the module, FUZZTIME inputs (100000x) each
	@grep -roE '^func Fuzz[A-Za-z0-9]+' --include='*_test.go' . | sort | while IFS=: read -r file target; do \
		target=$${target#func }; echo "$$target ($$file)"; \
		$(PURE) $(GO) test $(FLAGS) -tags soak "$$(dirname "$$file")" -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s </dev/null || exit 1; \
	done

cross: ## build for every platform, and vet for every system
	for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64; do \
		echo "$$platform"; \
		GOOS=$${platform%/*} GOARCH=$${platform#*/} $(PURE) $(GO) build $(FLAGS) -o /dev/null ./cmd/duet-rpc || exit 1; \
	done
	for system in darwin windows; do \
		GOOS=$$system GOARCH=amd64 $(PURE) $(GO) vet $(FLAGS) ./... || exit 1; \
	done

bench: build ## measure the program beside others (docs/performance.md); about 5 minutes
	cd internal/bench && $(GO) run . -duet $(CURDIR)/$(BIN) $(BENCHFLAGS)

load: ## the hub under 200 clients of all families (docs/performance.md); about 5 minutes
	DUET_LOAD_TESTS=50 $(PURE) $(GO) test $(FLAGS) -tags soak ./internal/e2e/hub -run 'TestCrowd|TestIdleClients' -count=1 -v -timeout 15m

crash: ## states that a power cut can leave, each opened by a new daemon and judged (docs/durability.md); Linux with strace; CRASHTIME, 10 minutes
	$(PURE) $(GOTEST) $(FLAGS) -tags soak ./internal/crash -count=1 -v -timeout 0 -crash.time $(CRASHTIME) -crash.keep $(CURDIR)/bin/crash $(CRASHFLAGS)

chaos: ## processes killed at random, and what came of what was acknowledged (internal/chaos); CHAOSTIME, 5 minutes
	$(PURE) $(GOTEST) $(FLAGS) -tags soak ./internal/chaos -run TestChaos -count=1 -v -timeout 0 -chaos.time $(CHAOSTIME) -chaos.keep $(CURDIR)/bin/chaos $(CHAOSFLAGS)

faults: ## each call of the file system fails in turn (internal/chaos); FAULTSTIME, 5 minutes; 0: until each has failed; FAULTSPART, such as 3/8
	$(PURE) $(GOTEST) $(FLAGS) -tags soak ./internal/chaos -run 'TestFaults|TestVanishedFiles' -count=1 -v -timeout 0 -faults.time $(FAULTSTIME) -faults.part $(FAULTSPART) $(FAULTSFLAGS)

vsix: ## the VS Code extension for each platform, with the program in it: bin/duet-PLATFORM.vsix
	cd vscode && npm ci --ignore-scripts --no-audit --no-fund
	for platform in linux-x64/amd64 linux-arm64/arm64 darwin-x64/amd64 darwin-arm64/arm64; do \
		to=$${platform%/*}; \
		GOOS=$${to%-*} GOARCH=$${platform#*/} $(PURE) $(GO) build $(FLAGS) -ldflags '$(LDFLAGS) -s -w' -o bin/vsix/$$to ./cmd/duet-rpc && \
		(cd vscode && DUET_PACKAGED=../bin/vsix/$$to npm run --silent package -- --target $$to --out ../bin/duet-$$to.vsix) || exit 1; \
	done
	rm -r vscode/server bin/vsix

docs: ## write docs/cli.md, docs/methods.md, docs/executors.md and the keys in docs/configuration.md from the code
	$(UPDATE) $(PURE) $(GO) test $(FLAGS) ./internal/config -run TestConfigurationDocument
	$(UPDATE) $(PURE) $(GO) test $(FLAGS) ./internal/cli -run TestCommandsDocument
	$(UPDATE) $(PURE) $(GO) test $(FLAGS) ./handlers -run TestMethodsDocument
	$(UPDATE) $(PURE) $(GO) test $(FLAGS) ./internal/catalogrpc -run TestExecutorsDocument

generate: docs ## the same, and the methods for clients: vscode/src/protocol.ts, emacs/duet-protocol.el, internal/hubclient/calls.go
	$(UPDATE) $(PURE) $(GO) test $(FLAGS) ./handlers -run 'TestTypeScriptTypes|TestEmacsNames|TestGoCalls'

FONT ?= $(firstword $(wildcard /usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf /usr/share/fonts/TTF/DejaVuSansMono.ttf))
pictures: ## draw the screens of testdata/screens, light and dark, into bin/pictures; FONT=FILE.ttf has the signs
	cd internal/pictures && $(GO) run . -font '$(FONT)' -into $(CURDIR)/bin/pictures $(CURDIR)/testdata/screens/*.ansi
	@echo bin/pictures

clean: ## remove what was built
	rm -rf bin

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14
