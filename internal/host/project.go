package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/checkpoint"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// hubProject implements [hub.Project].
type hubProject struct {
	project project.Project
	lock    *project.Lock
	config  *config.Live
	notes   *agentlink.Notes
	log     *logging.Log

	mu       sync.Mutex
	replaced time.Time // as last read
}

// OpenStore opens the project's database. For a project that was moved it renames the directory of
// its worktrees, whose links package worktree repairs, and replaces the paths in the database.
func (h *hubProject) OpenStore(ctx context.Context, opts store.Options) (store.Store, error) {
	p, r := h.project, h.lock.Record
	s, err := sqlite.Open(ctx, p.Database(), opts)
	if err != nil {
		return nil, err
	}
	if r.MovedFrom == "" {
		return s, nil
	}
	from := string(r.MovedFrom)
	h.log.Info("the project was moved here", "from", from)
	worktrees, oldWorktrees := project.WorktreesDir(p.StateDir), r.OldWorktreesDir()
	if oldWorktrees != worktrees { // else a power cut came before the state got its new name, or the project is back
		err = durable.Rename(oldWorktrees, worktrees)
		if errors.Is(err, fs.ErrNotExist) { // there are none, or a killed process has moved them
			err = nil
		}
	}
	if err == nil {
		err = s.Write(ctx, func(t store.Tx) error {
			return errors.Join(t.MoveDirectories(from, p.Root), t.MoveDirectories(oldWorktrees, worktrees))
		})
	}
	if err == nil {
		err = p.PathsMoved()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("moving the project from %s: %w", from, err), s.Close())
	}
	return s, nil
}

// OpenWorktrees implements [hub.Project].
func (h *hubProject) OpenWorktrees(ctx context.Context, trusts bool) (hub.Worktrees, error) {
	return openWorktrees(ctx, h.project, trusts, h.log.Logger)
}

// Checkpoints implements [hub.Project].
func (h *hubProject) Checkpoints(dir string) (opts checkpoint.Options, on bool) {
	now, err := h.config.Current(false)
	return checkpoint.Options{
		Dir: dir, State: checkpointState(h.project.StateDir, dir), Log: h.log.Logger,
		Trusted: func() bool { return isTrusted(h.project) },
	}, err == nil && now.Checkpoints && !holdsHome(dir)
}

// CheckpointsDir returns the directory with a directory for each checkpoint store of a project.
func CheckpointsDir(stateDir string) string { return filepath.Join(stateDir, "checkpoints") }

// checkpointState returns the directory of the store of a working directory.
func checkpointState(stateDir, dir string) string {
	name := sha256.Sum256([]byte(dir))
	return filepath.Join(CheckpointsDir(stateDir), hex.EncodeToString(name[:8]))
}

// holdsHome reports whether a directory is the user's home directory or above it. Such a
// directory has too much that is no project.
func holdsHome(dir string) bool {
	home, err := os.UserHomeDir()
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(dir, home)
	return err == nil && filepath.IsLocal(rel)
}

// EditorServer implements [hub.Project]. Agents start servers with an environment of their own
// choice, so it names all that the server needs.
func (h *hubProject) EditorServer(session string) *catalog.MCPServer {
	program := runningProgram()
	if strings.HasPrefix(program, "/proc/self/") { // which would be the agent's
		program = fmt.Sprintf("/proc/%d/exe", os.Getpid())
	}
	env := make(map[string]string)
	for _, name := range []string{project.StateVariable, "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"} {
		if value := os.Getenv(name); value != "" {
			env[name] = value
		}
	}
	args := []string{"mcp", "--session", session, "--root", h.project.Root}
	return &catalog.MCPServer{Name: catalog.EditorServer, Command: program, Args: args, Env: env}
}

// Valid implements [hub.Project].
func (h *hubProject) Valid() error {
	if err := h.lock.Valid(); err != nil {
		return err
	}
	return h.lock.Record.CheckRoot()
}

// Replaced implements [hub.Project]: it returns the last known time while the record cannot be read.
func (h *hubProject) Replaced() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at, err := h.project.Replaced(); err == nil {
		h.replaced = at
	}
	return h.replaced
}

// SignInSeen implements [hub.Project].
func (h *hubProject) SignInSeen(agent config.Agent, answered bool) {
	h.notes.Turn(agent.Name, agent.StartCommand(), answered)
}

// private returns the paths of [hub.Options.Private].
func private(p project.Project, c *config.Live) (list []string) {
	for _, dir := range []func(func(string) string) (string, error){project.StateHome, project.ConfigHome} {
		if path, err := dir(os.Getenv); err == nil {
			list = append(list, path)
		}
	}
	list = append(list, p.StateDir, filepath.Dir(AIWGSocket(p.Root)), os.Getenv("DUET_RPC_LOG"))
	if path, _, err := socket.Path(p.StateDir); err == nil {
		list = append(list, filepath.Dir(path))
	}
	if now, err := c.Current(false); err == nil {
		for _, key := range now.Keys {
			list = append(list, key.File)
		}
	}
	return list
}
