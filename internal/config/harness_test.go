package config_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// world is a user and a project.
type world struct {
	t             *testing.T
	dir, bin      string
	project, user string
	env           map[string]string
	trust         *config.Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	w := &world{
		t: t, dir: dir, bin: filepath.Join(dir, "bin"),
		project: filepath.Join(dir, "project", ".duet.toml"), user: filepath.Join(dir, "config", "config.toml"),
		trust: config.NewTrust(filepath.Join(dir, "state", "trusted.json")),
	}
	w.env = map[string]string{"HOME": filepath.Join(dir, "home"), "PATH": w.bin}
	for _, d := range []string{w.bin, filepath.Dir(w.project), filepath.Dir(w.user)} {
		require.NoError(t, os.Mkdir(d, 0o700))
	}
	return w
}

func (w *world) getenv(name string) string { return w.env[name] }

func (w *world) write(path, text string) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(path, []byte(text), 0o600))
}

func (w *world) read(path string) []byte {
	w.t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(w.t, err)
	return content
}

// install puts programs on the user's PATH.
func (w *world) install(names ...string) {
	w.t.Helper()
	for _, name := range names {
		testkit.Program(w.t, filepath.Join(w.bin, executable(name)), "#!/bin/sh\n")
	}
}

func executable(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}

func (w *world) sources() config.Sources {
	return config.Sources{Project: w.project, User: w.user, Getenv: w.getenv, Trust: w.trust}
}

func (w *world) load() *config.Config {
	w.t.Helper()
	c, err := config.Load(w.sources())
	require.NoError(w.t, err)
	return c
}

// trusted makes the user trust the project's file.
func (w *world) trusted() *world {
	w.t.Helper()
	require.NoError(w.t, w.trust.Trust(w.project, w.read(w.project)))
	return w
}
