module github.com/duet-rpc/duet-rpc/internal/bench

go 1.26.0

require (
	github.com/google/uuid v1.6.0
	github.com/sourcegraph/jsonrpc2 v0.2.3
	go.lsp.dev/jsonrpc2 v1.0.1
	golang.org/x/sys v0.50.0
)

require (
	github.com/dustin/go-humanize v1.1.0 // indirect
	github.com/gofrs/flock v0.13.1 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/ncruces/go-strftime v1.1.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	modernc.org/libc v1.79.0 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)

require (
	github.com/duet-rpc/duet-rpc v0.0.0
	github.com/go-json-experiment/json v0.0.0-20260601182631-00ed12fed2a6 // indirect
	modernc.org/sqlite v1.61.1
)

replace github.com/duet-rpc/duet-rpc => ../..
