// Package daemon starts, inspects and ends the project's hub.
package daemon

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// Status asks the hub how it is; it starts none.
func Status(ctx context.Context, s *hubprocess.Settings, p project.Project) (wire.HubStatus, error) {
	c, err := hubprocess.Dial(ctx, s, p)
	if err != nil {
		return wire.HubStatus{}, err
	}
	defer c.Close()
	return wire.Status(ctx, c)
}
