module github.com/duet-rpc/duet-rpc/internal/bench

go 1.26.0

require (
	github.com/sourcegraph/jsonrpc2 v0.2.3
	go.lsp.dev/jsonrpc2 v1.0.1
	golang.org/x/sys v0.49.0
)

require github.com/go-json-experiment/json v0.0.0-20260601182631-00ed12fed2a6 // indirect
