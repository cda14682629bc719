package host

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// A claim is the right to be the hub of a project, which its lock is, or why
// there is none. It may be used by any goroutine.
type claim struct {
	find func() (project.Project, error)

	mu      sync.Mutex      // guards the fields below
	project project.Project // the zero value while it was not found
	lock    *project.Lock   // nil: it is not had
	err     error           // why it is not; of *project.HeldError if another process is the hub
}

// claimProject tries to become the hub of the project.
func claimProject(s *hubprocess.Settings) *claim {
	c := &claim{find: s.Project}
	_, _ = c.take(context.Background()) // c knows
	return c
}

// claimWithin is how long another process that has just taken the lock may take
// to write which one it is.
const claimWithin = time.Second

// take takes the lock, unless it is had, and reports whether it did.
func (c *claim) take(ctx context.Context) (taken bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lock != nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, claimWithin)
	defer cancel()
	found, err := c.find()
	if err == nil {
		c.project = found
		c.lock, err = found.Claim(ctx)
	}
	c.err = err
	return err == nil, err
}

// know notes which project it is, for errors, where the claim is not taken.
func (c *claim) know(p project.Project) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.project = p
}

// release gives the lock up.
func (c *claim) release(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lock.Close()
	c.lock, c.err = nil, why
}

// held reports whether another process is the hub.
func (c *claim) held() bool {
	var held *project.HeldError
	return errors.As(c.why(), &held)
}

// why is why the lock is not had, or nil.
func (c *claim) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// of is the project that the claim is to; the lock is nil if it is not had.
func (c *claim) of() (project.Project, *project.Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.project, c.lock
}

// exists reports whether the project's directory is still there.
func (c *claim) exists() bool {
	p, _ := c.of()
	_, err := os.Stat(p.Root)
	return err == nil
}
