// Package dialect has the methods of the clients of other systems: each has a package below this one, whose
// methods are forms of the native ones.
package dialect

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/dialect/aiwg"
	"github.com/duet-rpc/duet-rpc/internal/dialect/boundary"
	"github.com/duet-rpc/duet-rpc/internal/dialect/executor"
	"github.com/duet-rpc/duet-rpc/internal/dialect/humanlayer"
	"github.com/duet-rpc/duet-rpc/internal/dialect/native"
)

// Register registers the methods of all dialects. The registry must have the native ones. flush waits until
// all clients have all notifications about tasks so far, or its context ends.
func Register(m native.Methods) (flush func(context.Context)) {
	humanlayer.Register(m)
	flush = aiwg.Register(m)
	executor.Register(m)
	boundary.Register(m)
	return flush
}
