module github.com/duet-rpc/duet-rpc/internal/pictures

go 1.26.0

require (
	github.com/clipperhouse/displaywidth v0.11.0
	github.com/duet-rpc/duet-rpc v0.0.0
	golang.org/x/image v0.47.0
)

require (
	github.com/clipperhouse/uax29/v2 v2.7.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.44.0 // indirect
)

replace github.com/duet-rpc/duet-rpc => ../..
