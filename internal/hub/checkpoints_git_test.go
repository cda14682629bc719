package hub

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/changereview"
	"github.com/duet-rpc/duet-rpc/internal/checkpoint"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
)

// These tests run git.

func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// heldGit returns a git whose status waits while the file hold exists.
func heldGit(t *testing.T, hold string) string {
	git := filepath.Join(t.TempDir(), "git")
	testkit.Program(t, git, "#!/bin/sh\ncase $* in *status*) while test -e '"+hold+"'; do sleep 0.01; done;; esac\nexec '"+testkit.NeedTool(t, "git")+"' \"$@\"\n")
	return git
}

func TestChangesOfCommandsAreChangesOfTheTurn(t *testing.T) {
	testkit.NeedTool(t, "git")
	for name, prepare := range map[string]func(t *testing.T, dir string){
		"git repository": func(t *testing.T, dir string) {
			runGit(t, dir, "init", "-q")
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
			var h *Hub
			h = openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
				if x.p.Prompt != "run" {
					write("changed.txt", "without a command\n")
					return completed
				}
				x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "1", Tool: "Bash", Kind: "execute", Status: "in_progress"})
				write("changed.txt", "two\n")
				write("edited.txt", "two\n")
				write("new.bin", "\x00")
				write("ignored.log", "two\n")
				write("users.txt", "mine\n")
				write("both.txt", "mine\n")
				h.Saved([]string{filepath.Join(dir, "users.txt"), filepath.Join(dir, "both.txt"), "/etc/passwd", "both.txt"})
				saved := time.Now()
				for { // file systems count time in ticks
					write("both.txt", "the command's\n")
					if at, err := checkpoint.ChangeTime(filepath.Join(dir, "both.txt")); err == nil && at.After(saved) {
						break
					}
				}
				require.NoError(t, os.Remove(filepath.Join(dir, "gone.txt")))
				edited, before := "reported\n", "one\n"
				x.report(catalog.EventFileChange, catalog.FileChange{Path: filepath.Join(dir, "edited.txt"), Before: &before, After: &edited})
				x.report(catalog.EventToolResult, catalog.ToolCall{ToolID: "1", Status: "completed"})
				return completed
			}, func(o *Options) {
				o.Root = dir
				state := t.TempDir()
				fakeOf(o).checkpoints = func(of string) (checkpoint.Options, bool) { return checkpoint.Options{Dir: of, State: state}, true }
			})
			turn := launch(t, h, "run")
			require.Equal(t, domain.Completed, await(t, h, turn).State)
			changes := must(h.store.Changes(context.Background(), turn.Turn.ID))(t)
			one, two, reported, commands := "one\n", "two\n", "reported\n", "the command's\n"
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
				"both.txt": {after: &commands}, // and not users.txt, which the user has saved
			}, got)

			second := launch(t, h, "say")
			require.Equal(t, domain.Completed, await(t, h, second).State)
			changes = must(h.store.Changes(context.Background(), second.Turn.ID))(t)
			assert.Empty(t, changes, "a change without a command is not the agent's")
		})
	}
}

// A plain command reports no tool calls: what changes while it runs is its change, and goes back with it.
func TestChangesOfAPlainCommand(t *testing.T) {
	testkit.NeedTool(t, "git")
	dir, state := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(path, []byte("one\n"), 0o600))
	h := openHub(t, database(t), func(context.Context, *fakeTurn) catalog.ExecutePromptResult {
		assert.NoError(t, os.WriteFile(path, []byte("two\n"), 0o600))
		return completed
	}, func(o *Options) {
		o.Root, fakeOf(o).Agents = dir, agents{driver: "command"}
		fakeOf(o).checkpoints = func(of string) (checkpoint.Options, bool) { return checkpoint.Options{Dir: of, State: state}, true }
	})
	s := await(t, h, launch(t, h, "p"))
	changes := must(h.store.Changes(t.Context(), s.Turn.ID))(t)
	require.Len(t, changes, 1)
	assert.Equal(t, []string{path, "one\n", "two\n"}, []string{changes[0].Path, *changes[0].Before, *changes[0].After})
	must(h.Rewind(t.Context(), RewindSpec{Turn: s.UUID}))(t)
	assert.Equal(t, "one\n", string(must(os.ReadFile(path))(t)))
}

// A session's files go back to before a turn, and that is undone. Files that others have changed stay
// unless all files are to go back.
func TestRewind(t *testing.T) {
	testkit.NeedTool(t, "git")
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) { require.NoError(t, os.WriteFile(path(name), []byte(text), 0o600)) }
	files := func() map[string]string {
		all := make(map[string]string)
		list := must(os.ReadDir(dir))(t)
		for _, e := range list {
			all[e.Name()] = string(must(os.ReadFile(path(e.Name())))(t))
		}
		return all
	}
	write("both", "one\n")
	write("agents", "one\n")
	write("users", "one\n")
	write("gone", "one\n")
	start := files()
	hangs := make(chan struct{}, 2)
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		switch x.p.Prompt {
		case "edit":
			before, after := "one\n", "two\n"
			for _, name := range []string{"both", "agents"} {
				write(name, after)
				x.report(catalog.EventFileChange, catalog.FileChange{Path: path(name), Before: &before, After: &after})
			}
		case "command":
			x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "1", Tool: "Bash", Kind: "execute", Status: "in_progress"})
			write("new", "two\n")
			write("binary", "\x00two")
			require.NoError(t, os.Remove(path("gone")))
			x.report(catalog.EventToolResult, catalog.ToolCall{ToolID: "1", Status: "completed"})
		default:
			hangs <- struct{}{}
			return hang(ctx, x)
		}
		return completed
	}, func(o *Options) {
		o.Root = dir
		state := t.TempDir()
		fakeOf(o).checkpoints = func(of string) (checkpoint.Options, bool) { return checkpoint.Options{Dir: of, State: state}, true }
	})
	first := launch(t, h, "edit")
	await(t, h, first)
	second := must(h.Continue(t.Context(), ContinueSpec{From: first.UUID, Prompt: "command"}))(t)
	await(t, h, second)
	write("both", "three\n")
	write("users", "three\n")
	late := files()

	kinds := func(r Rewound) map[string]string {
		all := make(map[string]string)
		for _, f := range r.Files {
			all[filepath.Base(f.Path)] = string(f.Kind) + " " + f.Left
		}
		return all
	}
	rewind := func(turn string, all, preview bool) map[string]string {
		r := must(h.Rewind(t.Context(), RewindSpec{Turn: turn, All: all, Preview: preview}))(t)
		require.True(t, r.Checkpoint)
		return kinds(r)
	}
	undo := func(turn string) map[string]string {
		return kinds(must(h.UndoRewind(t.Context(), turn))(t))
	}
	require.Equal(t, domain.KindBadState, kindOf(t, errorOf(h.UndoRewind(t.Context(), first.UUID))), "nothing was rewound")

	// To before the last turn: only that is undone.
	ofSecond := map[string]string{"new": "deleted ", "binary": "deleted ", "gone": "added ", "both": "modified other", "users": "modified other"}
	assert.Equal(t, ofSecond, rewind(second.UUID, false, true))
	assert.Equal(t, late, files(), "a preview changes nothing")
	assert.Equal(t, ofSecond, rewind(second.UUID, false, false))
	assert.Equal(t, map[string]string{"both": "three\n", "agents": "two\n", "users": "three\n", "gone": "one\n"}, files())
	states := func(turn domain.TurnInSession) map[string]string {
		list := must(h.review.Files(t.Context(), turn))(t)
		all := make(map[string]string)
		for _, f := range list {
			all[filepath.Base(f.Path)] = f.State
		}
		return all
	}
	assert.Equal(t, map[string]string{"new": "reverted", "binary": "reverted", "gone": "reverted"}, states(second))
	assert.Equal(t, map[string]string{"new": "added ", "binary": "added ", "gone": "deleted "}, undo(second.UUID))
	assert.Equal(t, late, files())
	assert.Equal(t, map[string]string{"new": "open", "binary": "open", "gone": "open"}, states(second))

	// To before the first turn, with a file that the user has edited since.
	ofFirst := maps.Clone(ofSecond)
	ofFirst["agents"], ofFirst["both"] = "modified ", "modified edited"
	assert.Equal(t, ofFirst, rewind(first.UUID, false, false))
	assert.Equal(t, map[string]string{"both": "three\n", "agents": "one\n", "users": "three\n", "gone": "one\n"}, files())
	write("agents", "four\n")
	assert.Equal(t, "modified edited", undo(first.UUID)["agents"], "an edit after the rewind stays")
	assert.Equal(t, "four\n", files()["agents"])
	assert.Equal(t, "two\n", files()["new"])

	// All files.
	for name, left := range rewind(first.UUID, true, false) {
		assert.True(t, strings.HasSuffix(left, " "), "%s is %s", name, left)
	}
	assert.Equal(t, start, files())
	c := transcriptOf(t, h, second.HumanLayerSession)
	var notes []string
	for _, e := range c.Entries {
		if e.Role == "system" {
			notes = append(notes, e.Content)
		}
	}
	assert.Equal(t, []string{
		"Rewound: 3 files are as before 1.2.", "The rewinding to before 1.2 was undone: 3 files are as before it.",
		"Rewound: 4 files are as before 1.1.", "The rewinding to before 1.1 was undone: 3 files are as before it.", "Rewound: 6 files are as before 1.1.",
	}, notes)

	// One rewind after another is undone, the last first.
	write("users", "five\n")
	assert.Equal(t, map[string]string{"users": "modified "}, rewind(first.UUID, true, false))
	assert.Equal(t, map[string]string{"users": "modified "}, undo(first.UUID))
	assert.Equal(t, "modified edited", undo(first.UUID)["users"])
	write("users", "one\n")
	assert.Equal(t, map[string]string{"users": "modified "}, undo(first.UUID))
	assert.Equal(t, map[string]string{"both": "three\n", "agents": "four\n", "users": "three\n", "new": "two\n", "binary": "\x00two"}, files())
	assert.Equal(t, map[string]string{"agents": "modified edited"}, undo(first.UUID))
	require.Equal(t, domain.KindBadState, kindOf(t, errorOf(h.UndoRewind(t.Context(), first.UUID))), "all rewinds are undone")

	// All files are not restored while another session may change them.
	other := launch(t, h, "hang")
	<-hangs
	_, err := h.Rewind(t.Context(), RewindSpec{Turn: first.UUID, All: true})
	require.Equal(t, domain.KindBadState, kindOf(t, err))
	require.ErrorContains(t, err, other.Name())
	must(h.Rewind(t.Context(), RewindSpec{Turn: first.UUID}))(t)

	// A session that works is not rewound.
	third := must(h.Continue(t.Context(), ContinueSpec{From: second.UUID, Prompt: "hang"}))(t)
	<-hangs
	_, err = h.Rewind(t.Context(), RewindSpec{Turn: first.UUID})
	require.Equal(t, domain.KindBadState, kindOf(t, err))
	require.ErrorContains(t, err, third.Name())
}

func TestCheckpointThatFailsDoesNotFailTheTurn(t *testing.T) {
	testkit.NeedTool(t, "git")
	h := openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "1", Tool: "Bash", Kind: "execute", Status: "completed"})
		return completed
	}, func(o *Options) {
		fakeOf(o).checkpoints = func(of string) (checkpoint.Options, bool) {
			return checkpoint.Options{Dir: of, State: filepath.Join(t.TempDir(), "state"), Git: "/nonexistent/git"}, true
		}
	})
	assert.Equal(t, domain.Completed, await(t, h, launch(t, h, "run")).State)
}

// A directory that is too large is not read again before each turn.
func TestDirectoryThatIsTooLargeForCheckpoints(t *testing.T) {
	testkit.NeedTool(t, "git")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "large"), make([]byte, 200), 0o600))
	state := t.TempDir()
	h := openHub(t, database(t), func(context.Context, *fakeTurn) catalog.ExecutePromptResult { return completed }, func(o *Options) {
		o.Root = dir
		fakeOf(o).checkpoints = func(of string) (checkpoint.Options, bool) {
			return checkpoint.Options{Dir: of, State: state, MaxNewBytes: 100}, true
		}
	})
	for range 2 {
		await(t, h, launch(t, h, "p"))
		assert.True(t, h.checkpoints.isHopeless(dir))
	}
	notes := checkpointNotes(t, h)
	require.Len(t, notes, 1, "it is said once")
	assert.Contains(t, notes[0], "Files are not recorded before turns")
	require.NoError(t, os.Remove(filepath.Join(dir, "large")))
	h.checkpoints.mu.Lock()
	h.checkpoints.failed[dir] = h.checkpoints.failed[dir].Add(-tryAgain)
	h.checkpoints.mu.Unlock()
	turn := launch(t, h, "p")
	await(t, h, turn)
	assert.True(t, must(h.Rewind(t.Context(), RewindSpec{Turn: turn.UUID}))(t).Checkpoint)
}

// In a repository with too many files, those that git tracks are recorded, and the user is informed.
func TestOnlyTrackedFilesAreRecorded(t *testing.T) {
	testkit.NeedTool(t, "git")
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"add", "tracked"}} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "tracked"), nil, 0o600))
		runGit(t, dir, args...)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "large"), make([]byte, 200), 0o600))
	state, most := t.TempDir(), 1
	h := openHub(t, database(t), func(context.Context, *fakeTurn) catalog.ExecutePromptResult { return completed }, func(o *Options) {
		o.Root = dir
		fakeOf(o).checkpoints = func(of string) (checkpoint.Options, bool) {
			return checkpoint.Options{Dir: of, State: state, MaxFiles: most, MaxFileSize: 100}, true
		}
	})
	rewound := func() Rewound {
		turn := launch(t, h, "p")
		await(t, h, turn)
		r := must(h.Rewind(t.Context(), RewindSpec{Turn: turn.UUID, Preview: true}))(t)
		require.True(t, r.Checkpoint)
		return r
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "new"), nil, 0o600))
	assert.Equal(t, []checkpoint.Skipped{{Reason: checkpoint.Untracked}}, rewound().NotRecorded)
	rewound()
	notes := checkpointNotes(t, h)
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "Only the files that git tracks are recorded")

	most = 10
	h.checkpoints.forget(t.Context(), dir)
	assert.Equal(t, []checkpoint.Skipped{{Path: filepath.Join(dir, "large"), Reason: checkpoint.TooLarge}}, rewound().NotRecorded)
}

// A file's name need not be UTF-8.
func TestRewindAndUndoOddNames(t *testing.T) {
	testkit.NeedTool(t, "git")
	dir := t.TempDir()
	names := []string{"plain", "odd\xff", "\"quoted\""}
	files := func(text string) map[string]string {
		all := make(map[string]string)
		for _, name := range names {
			path := filepath.Join(dir, name)
			if text != "" {
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			}
			all[name] = string(must(os.ReadFile(path))(t))
		}
		return all
	}
	before := files("one\n")
	state := t.TempDir()
	h := openHub(t, database(t), func(context.Context, *fakeTurn) catalog.ExecutePromptResult { return completed }, func(o *Options) {
		o.Root = dir
		fakeOf(o).checkpoints = func(of string) (checkpoint.Options, bool) { return checkpoint.Options{Dir: of, State: state}, true }
	})
	turn := launch(t, h, "p")
	await(t, h, turn)
	late := files("two\n")
	must(h.Rewind(t.Context(), RewindSpec{Turn: turn.UUID, All: true}))(t)
	assert.Equal(t, before, files(""))
	undone := must(h.UndoRewind(t.Context(), turn.UUID))(t)
	assert.Equal(t, late, files(""))
	assert.Len(t, undone.Files, len(names))
}

// A file that was not recorded before a turn stays, although the checkpoint of then does not have it.
func TestRewindLeavesFilesThatWereNotRecorded(t *testing.T) {
	testkit.NeedTool(t, "git")
	dir, state := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("large", strings.Repeat("x", 101))
	write("small", "x")
	h := openHub(t, database(t), func(context.Context, *fakeTurn) catalog.ExecutePromptResult { return completed }, func(o *Options) {
		o.Root = dir
		fakeOf(o).checkpoints = func(of string) (checkpoint.Options, bool) {
			return checkpoint.Options{Dir: of, State: state, MaxFileSize: 100}, true
		}
	})
	turn := launch(t, h, "p")
	await(t, h, turn)
	require.NoError(t, h.checkpoints.settle(t.Context(), dir))
	write("large", "smaller")
	write("small", "y")
	write("new", "x")
	w := must(h.Rewind(t.Context(), RewindSpec{Turn: turn.UUID, All: true}))(t)
	assert.Len(t, w.NotRecorded, 1)
	assert.Len(t, w.Files, 2)
	assert.Equal(t, "smaller", string(must(os.ReadFile(filepath.Join(dir, "large")))(t)))
	assert.Equal(t, "x", string(must(os.ReadFile(filepath.Join(dir, "small")))(t)))
	assert.NoFileExists(t, filepath.Join(dir, "new"))
}

// A failed checkpoint is reported where the user looks, until one succeeds.
func TestFailedCheckpointsAreReported(t *testing.T) {
	testkit.NeedTool(t, "git")
	dir := t.TempDir()
	state := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.WriteFile(state, nil, 0o600))
	h := openHub(t, database(t), func(context.Context, *fakeTurn) catalog.ExecutePromptResult { return completed }, func(o *Options) {
		o.Root = dir
		fakeOf(o).checkpoints = func(of string) (checkpoint.Options, bool) { return checkpoint.Options{Dir: of, State: state}, true }
	})
	prompt := func() {
		await(t, h, launch(t, h, "p"))
		require.NoError(t, h.checkpoints.settle(t.Context(), dir))
	}
	prompt()
	prompt()
	require.Len(t, h.Issues(), 1)
	assert.Contains(t, h.Issues()[0], "files are not recorded before turns, so they cannot be rewound, and what commands change is not known in "+dir)
	notes := checkpointNotes(t, h)
	require.Len(t, notes, 1, "once")
	assert.Contains(t, notes[0], "Files are not recorded before turns")

	require.NoError(t, os.Remove(state))
	prompt()
	assert.Empty(t, h.Issues())
}

// Checkpoints go on after a user has deleted their directory while the hub runs.
func TestCheckpointsWhoseDirectoryWasDeleted(t *testing.T) {
	testkit.NeedTool(t, "git")
	for _, inRepository := range []bool{true, false} {
		dir, state := t.TempDir(), t.TempDir()
		if inRepository {
			runGit(t, dir, "init", "-q")
		}
		h := openHub(t, database(t), func(context.Context, *fakeTurn) catalog.ExecutePromptResult { return completed }, func(o *Options) {
			o.Root = dir
			fakeOf(o).checkpoints = func(of string) (checkpoint.Options, bool) { return checkpoint.Options{Dir: of, State: state}, true }
		})
		prompt := func() domain.TurnInSession {
			turn := await(t, h, launch(t, h, "p"))
			require.NoError(t, h.checkpoints.settle(t.Context(), dir))
			return turn
		}
		first := prompt()
		require.NoError(t, os.RemoveAll(state))
		assert.False(t, must(h.Rewind(t.Context(), RewindSpec{Turn: first.UUID, Preview: true}))(t).Checkpoint)

		require.NoError(t, os.RemoveAll(state))
		second := prompt()
		assert.Empty(t, h.Issues())
		assert.True(t, must(h.Rewind(t.Context(), RewindSpec{Turn: second.UUID, Preview: true}))(t).Checkpoint)
	}
}

func checkpointNotes(t *testing.T, h *Hub) (texts []string) {
	events := must(h.store.Events(t.Context(), 0, 1000))(t)
	for _, e := range events {
		if m, is := e.Payload.(domain.MessageAdded); is && m.Subtype == transcript.NoteCheckpoint {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

// The executable bit is a part of a change with a decision of its own.
func TestExecutableBitThatACommandChanges(t *testing.T) {
	testkit.NeedTool(t, "git")
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) { require.NoError(t, os.WriteFile(path(name), []byte(text), 0o640)) }
	modes := func() (list []string) {
		for _, name := range []string{"binary", "edited", "alone", "text"} {
			list = append(list, fmt.Sprintf("%s %o", name, must(os.Stat(path(name)))(t).Mode().Perm()))
		}
		return list
	}
	for _, name := range []string{"alone", "text", "edited"} {
		write(name, "one\n")
	}
	write("binary", "\x00")
	h := openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "1", Tool: "Bash", Kind: "execute", Status: "in_progress"})
		write("text", "two\n")
		before, after := "one\n", "three\n"
		write("edited", after)
		x.report(catalog.EventFileChange, catalog.FileChange{Path: path("edited"), Before: &before, After: &after})
		for _, name := range []string{"alone", "text", "edited", "binary"} {
			assert.NoError(t, os.Chmod(path(name), 0o750))
		}
		x.report(catalog.EventToolResult, catalog.ToolCall{ToolID: "1", Status: "completed"})
		return completed
	}, func(o *Options) {
		o.Root = dir
		state := t.TempDir()
		fakeOf(o).checkpoints = func(of string) (checkpoint.Options, bool) { return checkpoint.Options{Dir: of, State: state}, true }
	})
	turn := launch(t, h, "run")
	require.Equal(t, domain.Completed, await(t, h, turn).State)
	found := func() (list []string) {
		files := must(h.Review().Files(context.Background(), turn))(t)
		for _, f := range files {
			text := filepath.Base(f.Path) + " " + f.State
			for _, hunk := range f.Hunks {
				text += ", " + hunk.State
			}
			list = append(list, fmt.Sprintf("%s, mode %o %o %s", text, f.Mode.Old, f.Mode.New, f.Mode.State))
		}
		return list
	}
	assert.Equal(t, []string{
		"alone open, mode 100644 100755 open", "binary open, mode 100644 100755 open",
		"edited open, open, mode 100644 100755 open", "text open, open, mode 100644 100755 open",
	}, found())
	files := must(h.Review().Files(context.Background(), turn))(t)
	assert.Equal(t, "diff --git a/alone b/alone\nold mode 100644\nnew mode 100755\n", files[0].Diff)
	assert.Contains(t, files[3].Diff, "new mode 100755\n--- a/text\n+++ b/text\n")

	decide := func(name, part, decision string) error {
		_, err := h.Review().Decide(context.Background(), turn, changereview.Decision{Path: name, Hunk: part, Decision: decision})
		return err
	}
	require.NoError(t, decide("alone", "", changereview.Revert))
	require.NoError(t, decide("text", "", changereview.Revert))
	require.NoError(t, decide("edited", files[2].Mode.ID, changereview.Revert))
	require.ErrorContains(t, decide("binary", "", changereview.Revert), "is no text")
	require.NoError(t, decide("binary", files[1].Mode.ID, changereview.Revert))
	assert.Equal(t, []string{
		"alone reverted, mode 100644 100755 reverted", "binary open, mode 100644 100755 reverted",
		"edited open, open, mode 100644 100755 reverted", "text reverted, reverted, mode 100644 100755 reverted",
	}, found())
	assert.Equal(t, []string{"binary 640", "edited 640", "alone 640", "text 640"}, modes())
	assert.Equal(t, "one\n", string(must(os.ReadFile(path("text")))(t)))

	require.ErrorContains(t, decide("edited", files[2].Mode.ID, changereview.Accept), "reopen it")
	for _, name := range []string{"alone", "text", "edited"} {
		require.NoError(t, decide(name, "", changereview.Reopen))
	}
	assert.Equal(t, []string{"binary 640", "edited 750", "alone 750", "text 750"}, modes())
	require.NoError(t, os.Remove(path("alone")))
	require.ErrorContains(t, decide("alone", "", changereview.Revert), "no longer exists")
}

// An agent has its prompt while the files before it are still being recorded, and what it changes
// meanwhile is its change.
func TestAPromptDoesNotWaitForItsCheckpoint(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	users, file, hold := filepath.Join(dir, "users"), filepath.Join(dir, "file"), filepath.Join(state, "hold")
	write := func(path, text string) { assert.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	git := heldGit(t, hold)
	h := openHubOf(t, database(t), &executors{play: func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "1", Tool: "Bash", Kind: "execute", Status: "in_progress"})
		write(file, x.p.Prompt+"\n")
		write(filepath.Join(dir, x.p.Prompt), "new\n")
		x.report(catalog.EventToolResult, catalog.ToolCall{ToolID: "1", Status: "completed"})
		assert.NoError(t, os.RemoveAll(hold)) // the checkpoint goes on
		return completed
	}}, func(o *Options) {
		o.Root = dir
		fakeOf(o).checkpoints = func(of string) (checkpoint.Options, bool) {
			return checkpoint.Options{Dir: of, State: filepath.Join(state, "store"), Git: git}, true
		}
	})
	write(file, "zero\n")
	write(users, "zero\n")
	require.Equal(t, domain.Completed, await(t, h, launch(t, h, "one")).State)
	write(users, "one\n")
	write(hold, "")
	second := launch(t, h, "two")
	require.Equal(t, domain.Completed, await(t, h, second).State)
	changes := must(h.store.Changes(t.Context(), second.Turn.ID))(t)
	var got []string
	for _, c := range changes {
		text := filepath.Base(c.Path) + ":"
		if c.Before != nil {
			text += " from " + strings.TrimSpace(*c.Before)
		}
		got = append(got, text+" to "+strings.TrimSpace(*c.After))
	}
	assert.Equal(t, []string{"file: from one to two", "two: to new"}, got)
	must(h.Rewind(t.Context(), RewindSpec{Turn: second.UUID, All: true}))(t)
	for path, want := range map[string]string{file: "one\n", users: "one\n"} {
		assert.Equal(t, want, string(must(os.ReadFile(path))(t)))
	}
	assert.NoFileExists(t, filepath.Join(dir, "two"))
}

// On a slow machine a turn ends before the changes of its commands are known. They are recorded then, and are not lost.
func TestChangesOfCommandsThatComeLate(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	file, hold := filepath.Join(dir, "file"), filepath.Join(state, "hold")
	git := heldGit(t, hold)
	h := openHubOf(t, database(t), &executors{play: func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "1", Tool: "Bash", Kind: "execute", Status: "in_progress"})
		assert.NoError(t, os.WriteFile(file, []byte("made\n"), 0o600))
		x.report(catalog.EventToolResult, catalog.ToolCall{ToolID: "1", Status: "completed"})
		return completed
	}}, func(o *Options) {
		o.Root = dir
		fakeOf(o).checkpoints = func(of string) (checkpoint.Options, bool) {
			return checkpoint.Options{Dir: of, State: filepath.Join(state, "store"), Git: git}, true
		}
	})
	h.checkpoints.wait = time.Millisecond
	require.NoError(t, os.WriteFile(hold, nil, 0o600))
	turn := launch(t, h, "one")
	require.Equal(t, domain.Completed, await(t, h, turn).State)
	assert.Empty(t, must(h.store.Changes(t.Context(), turn.Turn.ID))(t))
	require.NoError(t, os.Remove(hold))
	assert.False(t, must(h.NotRecorded(t.Context(), turn))(t), "it waits for what is being recorded")
	changes := must(h.store.Changes(t.Context(), turn.Turn.ID))(t)
	require.Len(t, changes, 1)
	assert.Equal(t, file, changes[0].Path)
}

// A turn may begin while the files after the turn before are still being recorded. Each of the two goes back
// to how the one before it has left the files.
func TestRewindOfATurnThatBeginsWhileFilesAreRecorded(t *testing.T) {
	for name, prepare := range map[string]func(dir string){
		"git repository": func(dir string) { runGit(t, dir, "init", "-q") },
		"no git":         func(string) {},
	} {
		t.Run(name, func(t *testing.T) {
			dir, state := t.TempDir(), t.TempDir()
			hold := filepath.Join(state, "hold")
			git := heldGit(t, hold)
			var h *Hub
			h = openHubOf(t, database(t), &executors{play: func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
				set := func(name, before, after string) {
					change := catalog.FileChange{Path: filepath.Join(dir, name)}
					if before != "" {
						change.Before = &before
					}
					if after != "" {
						change.After = &after
					}
					if name == "binary" {
						change.Before, change.After, change.Binary = nil, nil, true
					}
					if after == "" {
						assert.NoError(t, os.Remove(change.Path))
					} else {
						assert.NoError(t, os.WriteFile(change.Path, []byte(after), 0o600))
					}
					x.report(catalog.EventFileChange, change)
				}
				if x.p.Prompt == "one" {
					assert.NoError(t, h.checkpoints.settle(ctx, dir))
					set("edited", "zero\n", "one\n")
					set("back", "zero\n", "one\n")
					set("gone", "zero\n", "")
					set("made", "", "one\n")
					set("passing", "", "one\n")
					set("ignored.log", "", "one\n")
					set("alone", "", "one\n")
					set("binary", "", "one\n")
					assert.NoError(t, os.WriteFile(hold, nil, 0o600))
					return completed
				}
				set("edited", "one\n", "two\n")
				set("back", "one\n", "zero\n")
				set("gone", "", "two\n")
				set("made", "one\n", "two\n")
				set("passing", "one\n", "")
				set("ignored.log", "one\n", "")
				set("untouched", "zero\n", "two\n")
				set("binary", "one\n", "two\n")
				assert.NoError(t, os.Remove(hold))
				return completed
			}}, func(o *Options) {
				o.Root = dir
				fakeOf(o).checkpoints = func(of string) (checkpoint.Options, bool) {
					return checkpoint.Options{Dir: of, State: filepath.Join(state, "store"), Git: git}, true
				}
			})
			prepare(dir)
			for _, name := range []string{"edited", "back", "gone", "untouched"} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("zero\n"), 0o600))
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*.log\n"), 0o600))
			zero := testkit.ReadFiles(t, dir)
			first := must(h.Launch(t.Context(), LaunchSpec{Prompt: "one", CWD: dir, SessionAlias: "a"}))(t)
			require.Equal(t, domain.Completed, await(t, h, first).State)
			one := testkit.ReadFiles(t, dir)
			second := must(h.Launch(t.Context(), LaunchSpec{Prompt: "two", CWD: dir, SessionAlias: "a"}))(t)
			require.Equal(t, domain.Completed, await(t, h, second).State)

			delete(one, "ignored.log")
			one["binary"] = "two\n" // its text is not kept
			rewound := must(h.Rewind(t.Context(), RewindSpec{Turn: second.Turn.UUID}))(t)
			assert.Equal(t, []checkpoint.Skipped{{Path: filepath.Join(dir, "binary"), Reason: checkpoint.Changed}}, rewound.NotRecorded)
			assert.Equal(t, one, testkit.ReadFiles(t, dir))
			must(h.Rewind(t.Context(), RewindSpec{Turn: first.Turn.UUID}))(t)
			assert.Equal(t, zero, testkit.ReadFiles(t, dir))
		})
	}
}

// What the user has saved just before a prompt is there after a rewind, also if the agent edits the file
// before the checkpoint is taken.
func TestRewindKeepsWhatWasSavedJustBeforeThePrompt(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	hold := filepath.Join(state, "hold")
	git := heldGit(t, hold)
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	h := openHubOf(t, database(t), &executors{play: func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		if x.p.Prompt == "two" {
			for name, before := range map[string]string{"old": "users\n", "new": "users\n"} {
				after := "agents\n"
				write(name, after)
				x.report(catalog.EventFileChange, catalog.FileChange{Path: filepath.Join(dir, name), Before: &before, After: &after})
			}
			assert.NoError(t, os.Remove(hold))
		}
		return completed
	}}, func(o *Options) {
		o.Root = dir
		fakeOf(o).checkpoints = func(of string) (checkpoint.Options, bool) {
			return checkpoint.Options{Dir: of, State: filepath.Join(state, "store"), Git: git}, true
		}
	})
	write("old", "zero\n")
	require.Equal(t, domain.Completed, await(t, h, launch(t, h, "one")).State)
	require.NoError(t, h.checkpoints.settle(t.Context(), dir))
	write("old", "users\n")
	write("new", "users\n")
	require.NoError(t, os.WriteFile(hold, nil, 0o600))
	second := launch(t, h, "two")
	require.Equal(t, domain.Completed, await(t, h, second).State)
	must(h.Rewind(t.Context(), RewindSpec{Turn: second.Turn.UUID}))(t)
	assert.Equal(t, map[string]string{"old": "users\n", "new": "users\n"}, testkit.ReadFiles(t, dir))
}

// The fsmonitor of a trusted repository does not run for an editor that does not trust the workspace.
func TestFSMonitorOfARestrictedEditor(t *testing.T) {
	testkit.NeedTool(t, "git")
	dir, state := t.TempDir(), t.TempDir()
	ran, monitor := filepath.Join(state, "ran"), filepath.Join(state, "monitor")
	testkit.Program(t, monitor, "#!/bin/sh\ntouch '"+ran+"'\nprintf 'now\\0/\\0'\n")
	for _, args := range [][]string{{"init", "-q"}, {"config", "core.fsmonitor", monitor}} {
		runGit(t, dir, args...)
	}
	h := openHub(t, database(t), func(context.Context, *fakeTurn) catalog.ExecutePromptResult { return completed }, func(o *Options) {
		o.Root = dir
		fakeOf(o).checkpoints = func(of string) (checkpoint.Options, bool) {
			return checkpoint.Options{Dir: of, State: filepath.Join(state, "store"), Trusted: func() bool { return true }}, true
		}
	})
	await(t, h, must(h.Launch(clientenv.Restrict(context.Background()), LaunchSpec{Prompt: "p"}))(t))
	assert.NoFileExists(t, ran)
	await(t, h, launch(t, h, "p"))
	assert.FileExists(t, ran)
}
