package hubprocess

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// This file makes hosts that are there only when they are needed, such as containers, and removes them. The
// commands for that are those of the user's configuration.

// startWithin is how long the command that makes a host may take: it may fetch an image. stopWithin is how long
// the one that removes it may take.
const (
	startWithin = 15 * time.Minute
	stopWithin  = 2 * time.Minute
)

// A NeedsSessionError reports that a name is that of hosts of which each session has its own.
type NeedsSessionError struct {
	Name  string
	Known []string // the hosts of this name that were made for the project of this machine
}

func (e *NeedsSessionError) Error() string {
	text := fmt.Sprintf("each session has a %s of its own: `duet-rpc prompt --on %s` begins one", e.Name, e.Name)
	if len(e.Known) > 0 {
		text += ", or name one that is there: " + strings.Join(e.Known, ", ")
	}
	return text
}

// Made is a host that was made and not removed since.
type Made struct {
	Name string `json:"name"` // for the user: box, or box-3f2a9c
	Root string `json:"root"` // of the project of this machine for which it was made
}

// MadeHosts returns the hosts that were made, sorted by their names, without a look at them.
func MadeHosts() (list []Made) {
	home, err := project.StateHome(os.Getenv)
	if err != nil {
		return nil
	}
	files, _ := filepath.Glob(filepath.Join(home, "hosts", "*.json"))
	for _, path := range files {
		var k known
		if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &k) == nil && k.Made != nil {
			list = append(list, *k.Made)
		}
	}
	slices.SortFunc(list, func(a, b Made) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Root, b.Root)) })
	return list
}

// MadeHere returns the names of the hosts that were made for the project of this machine, sorted.
func (s *Settings) MadeHere() (names []string) {
	p, err := s.here()
	if err != nil {
		return nil
	}
	for _, m := range MadeHosts() {
		if m.Root == p.Root {
			names = append(names, m.Name)
		}
	}
	return names
}

// instances returns the hosts of sessions that were made for the project here, of a host of the configuration.
func (s *Settings) instances(of string) []string {
	return slices.DeleteFunc(s.MadeHere(), func(name string) bool {
		h, err := config.HostNamed(name, os.Getenv)
		return err != nil || h.Of != of
	})
}

// here returns the project of this machine, also if that of the settings is on a host.
func (s *Settings) here() (project.Project, error) {
	own := *s
	if own.Host != "" {
		own.Host, own.Root = "", s.Here
	}
	return own.Project()
}

// WasMade returns the project for which the host was made; false if it was removed, or never made.
func (h *Host) WasMade() (root string, is bool) {
	if k := h.recall(); k.Made != nil {
		return k.Made.Root, true
	}
	return "", false
}

// IsPartial reports whether a process makes or removes the host, or was killed meanwhile.
func (h *Host) IsPartial() bool { return h.recall().IsPartial }

// Here returns the root of the project of this machine for which the host is made.
func (h *Host) Here() string { return h.here }

// Make makes the host unless it is there. Processes that make the same host wait for each other. fresh says that
// the host cannot be there yet.
func (h *Host) Make(ctx context.Context, fresh bool) error {
	lock, err := h.lockMade(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	if !fresh {
		if h.isThere(ctx) {
			return nil
		}
	} else if _, is := h.WasMade(); is {
		return fmt.Errorf("the name %s is in use: try again", h.Name)
	}
	if h.settings.Notice != nil {
		h.settings.Notice("making " + h.Name)
	}
	// Before the command: if this process is killed, the user can still remove the host.
	before := h.recall().Made
	h.remember(func(k *known) { k.Made, k.IsPartial = &Made{Name: h.Name, Root: h.here}, true })
	err = h.runHere(ctx, "start", h.Start, startWithin)
	switch {
	case err == nil, !fresh && h.isThere(ctx):
		h.remember(func(k *known) { k.IsPartial = false })
		return nil
	case fresh && len(h.Stop) > 0:
		_ = h.remove(context.WithoutCancel(ctx)) // what the command has made by then
	case ctx.Err() == nil:
		h.remember(func(k *known) { k.Made, k.IsPartial = before, false })
	}
	return cmp.Or(ctx.Err(), err)
}

// Remove removes the host that was made. The caller has brought the work here before.
func (h *Host) Remove(ctx context.Context) error {
	lock, err := h.lockMade(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	return h.remove(ctx)
}

func (h *Host) remove(ctx context.Context) error {
	if len(h.Stop) == 0 {
		return fmt.Errorf("your configuration has no stop for %s", cmp.Or(h.Of, h.Name))
	}
	h.remember(func(k *known) { k.IsPartial = k.Made != nil })
	if err := h.runHere(ctx, "stop", h.Stop, stopWithin); err != nil {
		h.remember(func(k *known) { k.IsPartial = false })
		line := slices.Clone(h.Stop)
		for i, word := range line {
			line[i] = shellcommand.Argument(word)
		}
		return fmt.Errorf("%w; remove it with: %s", err, strings.Join(line, " "))
	}
	if path, err := h.knownFile(); err == nil {
		_ = os.Remove(path)
		_ = os.Remove(path + ".lock") // a process that waits for it runs start or stop once more at worst
	}
	return nil
}

func (h *Host) lockMade(ctx context.Context) (*flock.Flock, error) {
	path, err := h.knownFile()
	if err != nil {
		return nil, err
	}
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return nil, fmt.Errorf("waiting for another process that makes or removes %s: %w", h.Name, err)
	}
	return lock, nil
}

// isThere reports whether the host runs a command.
func (h *Host) isThere(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, LineWithin)
	defer cancel()
	_, err := h.run(ctx, nil, ":")
	return err == nil
}

// runHere runs a command of the configuration on this machine. Its error has the last line that the command wrote
// to its standard error. If the context ends, the command ends with all its children.
func (h *Host) runHere(ctx context.Context, what string, line []string, limit time.Duration) error {
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(within, line[0], line[1:]...)
	errs := &said{}
	cmd.Stderr = errs
	endWithChildren(cmd)
	cmd.WaitDelay = time.Second // a program that goes on in the background may keep the pipe
	err := cmd.Run()
	text := visible.ForTerminal().Line(errs.last())
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case within.Err() != nil:
		return fmt.Errorf("its %s took longer than %v", what, limit)
	case text != "":
		return fmt.Errorf("its %s failed: %s", what, text)
	}
	return fmt.Errorf("its %s failed: %s: %w", what, line[0], err)
}

// orMade runs reach, and once more after it has made the host, if the host is made for a project and is not there.
func (h *Host) orMade(ctx context.Context, reach func() error) error {
	err := reach()
	if !h.IsMade() || h.Of != "" || !isLine(err, lineBroken) && !isLine(err, lineMissing) {
		return h.orGone(err)
	}
	if failed := h.Make(ctx, false); failed != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		line, _ := errors.AsType[*LineError](err)
		return &LineError{Host: h.Name, Kind: lineBroken, Text: line.Text + "; " + failed.Error()}
	}
	return reach()
}

// Reach is Describe of a host on which a session is to begin: one that is made for a project is made if it is not
// there.
func (h *Host) Reach(ctx context.Context) error {
	return h.orMade(ctx, func() error {
		_, err := h.Describe(ctx)
		return err
	})
}

// orGone adds to the error of a line to the host of one session how to go on without the host.
func (h *Host) orGone(err error) error {
	line, is := errors.AsType[*LineError](err)
	if h.Of == "" || !is || line.Kind != lineBroken {
		return err
	}
	return &LineError{Host: line.Host, Kind: line.Kind, Text: fmt.Sprintf("%s; if it is gone, it is not made again, and what its session did "+
		"since it came here last is lost: `duet-rpc land --here N@%s` lands what came here, `duet-rpc prompt --here --fork N@%s` goes on from it",
		line.Text, h.Name, h.Name)}
}
