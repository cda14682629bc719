//go:build clients

package hub

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/checkpoint"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// These tests run git.

func TestChangesOfCommandsAreChangesOfTheRun(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, dir string){
		"git repository": func(t *testing.T, dir string) {
			out, err := exec.Command("git", "-C", dir, "init", "-q").CombinedOutput()
			require.NoError(t, err, string(out))
		},
		"no git repository": func(*testing.T, string) {},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			prepare(t, dir)
			write("changed.txt", "one\n")
			write("edited.txt", "one\n")
			write("gone.txt", "one\n")
			write(".gitignore", "*.log\n")
			h := openHub(t, database(t), func(_ context.Context, x *turn) catalog.ExecutePromptResult {
				if x.p.Prompt != "run" {
					write("changed.txt", "without a command\n")
					return completed
				}
				x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "1", Tool: "Bash", Kind: "execute", Status: "in_progress"})
				write("changed.txt", "two\n")
				write("edited.txt", "two\n")
				write("new.bin", "\x00")
				write("ignored.log", "two\n")
				require.NoError(t, os.Remove(filepath.Join(dir, "gone.txt")))
				edited, before := "reported\n", "one\n"
				x.report(catalog.EventFileChange, catalog.FileChange{Path: filepath.Join(dir, "edited.txt"), Before: &before, After: &edited})
				x.report(catalog.EventToolResult, catalog.ToolCall{ToolID: "1", Status: "completed"})
				return completed
			}, func(o *Options) {
				o.Root = dir
				state := t.TempDir()
				o.Checkpoints = func(of string) (checkpoint.Options, bool) { return checkpoint.Options{Dir: of, State: state}, true }
			})
			run := launch(t, h, "run")
			require.Equal(t, domain.Completed, await(t, h, run).State)
			changes, err := h.store.Changes(context.Background(), run.Run.ID)
			require.NoError(t, err)
			one, two, reported := "one\n", "two\n", "reported\n"
			type change struct {
				before, after *string
				binary        bool
			}
			got := make(map[string]change)
			for _, c := range changes {
				got[filepath.Base(c.Path)] = change{c.Before, c.After, c.Binary}
			}
			assert.Equal(t, map[string]change{
				"changed.txt": {before: &one, after: &two}, "gone.txt": {before: &one}, "new.bin": {binary: true}, "edited.txt": {before: &one, after: &reported},
			}, got)

			second := launch(t, h, "say")
			require.Equal(t, domain.Completed, await(t, h, second).State)
			changes, err = h.store.Changes(context.Background(), second.Run.ID)
			require.NoError(t, err)
			assert.Empty(t, changes, "a change without a command is not the agent's")
		})
	}
}

func TestCheckpointThatFailsDoesNotFailTheRun(t *testing.T) {
	h := openHub(t, database(t), func(_ context.Context, x *turn) catalog.ExecutePromptResult {
		x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "1", Tool: "Bash", Kind: "execute", Status: "completed"})
		return completed
	}, func(o *Options) {
		o.Checkpoints = func(of string) (checkpoint.Options, bool) {
			return checkpoint.Options{Dir: of, State: filepath.Join(t.TempDir(), "state"), Git: "/nonexistent/git"}, true
		}
	})
	assert.Equal(t, domain.Completed, await(t, h, launch(t, h, "run")).State)
}
