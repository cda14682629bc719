package host

import (
	"context"
	"fmt"
	"os"

	values "github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/logging"
)

// TryDemoAgent runs a prompt with the demo agent in a directory of its own, so
// that database, executor and agent are seen at work.
func TryDemoAgent(ctx context.Context, s Settings, log *logging.Log) error {
	dir, err := os.MkdirTemp("", "duet-rpc-doctor")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s.Root = dir
	d := newDomain(&s, log, claimProject(&s))
	defer d.close(ctx)
	h, err := d.Hub(ctx)
	if err != nil {
		return err
	}
	session, err := h.Launch(ctx, hub.LaunchSpec{Prompt: "quiet", Agent: "demo", Source: "prompt"})
	if err != nil {
		return err
	}
	if session, err = h.Await(ctx, session.UUID); err != nil {
		return err
	}
	if session.State != values.Completed {
		return fmt.Errorf("the demo agent's run is %s: %s", session.State, session.Error)
	}
	return nil
}
