package host

import (
	"context"
	"fmt"
	"os"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
)

// TryDemoAgent runs a prompt with the demo agent in its own directory, to test database,
// executor and agent.
func TryDemoAgent(ctx context.Context, s hubprocess.Settings, log *logging.Log) error {
	dir, err := os.MkdirTemp("", "duet-rpc-doctor")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s.Root = dir
	p, lock, err := claim(ctx, &s)
	if err != nil {
		return unavailable(p, err)
	}
	defer os.RemoveAll(p.StateDir)
	defer lock.Close()
	h, err := openProject(ctx, hubOptions{settings: &s, log: log, project: p, lock: lock})
	if err != nil {
		return unavailable(p, err)
	}
	defer h.close(ctx)
	session, err := h.hub.Launch(ctx, hub.LaunchSpec{Prompt: "quiet", Agent: "demo", Source: "prompt"})
	if err != nil {
		return err
	}
	if session, err = h.hub.Await(ctx, session.UUID); err != nil {
		return err
	}
	if session.State != domain.Completed {
		return fmt.Errorf("the demo agent's run is %s: %s", session.State, session.Error)
	}
	return nil
}
