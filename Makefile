# make        build, and have a session with the demo agent
# make test   all tests, with the real clients; installs what they need
# make help   the rest

GO      ?= go
BIN     := bin/duet-rpc
VERSION ?=
LDFLAGS := $(if $(VERSION),-X main.version=$(VERSION))
# The race detector watches what is written in Go, and not SQLite, which is translated
# from C, and would be many times slower (as in cmd/duet-rpc/main_test.go).
RACE    := -race $(foreach package,modernc.org/sqlite/lib modernc.org/libc modernc.org/memory,-gcflags=$(package)=-race=false)
PREFIX  ?= $(HOME)/.local
TOOL    := $(GO) tool -modfile=.ci/tools/go.mod
# A number of inputs ends a round exactly. At a time's end (30s), Go 1.26 sometimes reports
# its own deadline as a failure: "context deadline exceeded", and no input.
FUZZTIME ?= 100000x
CHAOSTIME ?= 5m

.PHONY: run build install test test-go test-clients lint fmt fuzz cross bench load chaos docs generate pictures clean help

run: build ## build, and have a session with the demo agent (the default)
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	answer=$$(test -t 0 || echo --yes) && \
	echo "duet-rpc prompt $$answer --agent demo \"Greet the README's reader\"" && \
	$(BIN) --root "$$dir" prompt $$answer --agent demo "Greet the README's reader"

build: ## build bin/duet-rpc
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/duet-rpc

install: build ## put it into PREFIX/bin, ~/.local/bin
	install -d "$(DESTDIR)$(PREFIX)/bin"
	install -m 755 $(BIN) "$(DESTDIR)$(PREFIX)/bin/duet-rpc"
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) ;; *) echo 'for your shell'"'"'s profile: export PATH="$(PREFIX)/bin:$$PATH"' ;; esac

test: ## all tests: Go with the race detector, Emacs, vscode-jsonrpc, SDKs of the Agent Client Protocol
	.ci/install
	$(MAKE) test-go test-clients

test-go: ## the Go tests alone
	$(GO) test $(RACE) -timeout 75m ./...

test-clients: build ## the tests with real clients alone
	DUET_RPC_BIN=$(CURDIR)/$(BIN) .ci/test-clients

lint: ## go vet, staticcheck, gofumpt
	$(GO) vet ./...
	cd internal/bench && $(GO) vet ./...
	cd internal/pictures && $(GO) vet ./...
	$(TOOL) staticcheck ./...
	@unformatted=$$($(TOOL) gofumpt -l .); \
	if [ -n "$$unformatted" ]; then echo "make fmt would change:"; echo "$$unformatted"; exit 1; fi

fmt: ## format the Go code
	$(TOOL) gofumpt -w .

fuzz: ## a round of each fuzz target of the module, FUZZTIME inputs (100000x) each
	@grep -roE '^func Fuzz[A-Za-z0-9]+' --include='*_test.go' . | sort | while IFS=: read -r file target; do \
		target=$${target#func }; echo "$$target ($$file)"; \
		$(GO) test "$$(dirname "$$file")" -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s </dev/null || exit 1; \
	done

cross: ## build and vet for every platform
	for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64; do \
		echo "$$platform"; \
		GOOS=$${platform%/*} GOARCH=$${platform#*/} CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/duet-rpc && \
		GOOS=$${platform%/*} GOARCH=$${platform#*/} CGO_ENABLED=0 $(GO) vet ./... || exit 1; \
	done

bench: build ## measure the program beside others (docs/performance.md); about 5 minutes
	cd internal/bench && $(GO) run . -duet $(CURDIR)/$(BIN) $(BENCHFLAGS)

load: ## the hub under 200 clients of all families (docs/performance.md); about 5 minutes
	DUET_LOAD_TESTS=50 $(GO) test ./cmd/duet-rpc -run 'TestCrowd|TestIdleClients' -count=1 -v -timeout 15m

chaos: ## processes killed at random, and what came of what was acknowledged (internal/chaos); CHAOSTIME, 5 minutes
	$(GO) test ./internal/chaos -run TestChaos -count=1 -v -timeout 0 -chaos.time $(CHAOSTIME) -chaos.keep $(CURDIR)/bin/chaos $(CHAOSFLAGS)

docs: ## write docs/protocol.md and docs/executors.md from the registries
	$(GO) test ./handlers -run TestProtocolDocument -update
	$(GO) test ./internal/catalogrpc -run TestExecutorsDocument -update

generate: docs ## the same, and vscode/src/protocol.ts, the types of the methods
	$(GO) test ./handlers -run TestTypeScriptTypes -update

FONT ?= $(firstword $(wildcard /usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf /usr/share/fonts/TTF/DejaVuSansMono.ttf))
pictures: ## draw the screens of testdata/screens, light and dark, into bin/pictures; FONT=FILE.ttf has the signs
	cd internal/pictures && $(GO) run . -font '$(FONT)' -into $(CURDIR)/bin/pictures $(CURDIR)/testdata/screens/*.ansi
	@echo bin/pictures

clean: ## remove what was built
	rm -rf bin

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14
