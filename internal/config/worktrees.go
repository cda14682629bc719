package config

import "time"

// Values of [Worktrees.Use].
const (
	WorktreeNever        = "never"
	WorktreeConversation = "conversation"
	WorktreeRun          = "run"
)

// Worktrees configures the git worktrees of conversations: the key worktree and [worktrees]. The zero
// value of a field is not configured.
type Worktrees struct {
	// Use says which new conversations get a worktree if their client does not choose: never,
	// conversation (each), or run, which also brings a worktree that is landed to the user's commit
	// before each run.
	Use     string
	Copy    []string      // patterns of files that git does not track, relative to the project
	Setup   []string      // the program and arguments that run in a new worktree
	Cleanup []string      // the same, before a worktree is deleted
	Timeout time.Duration // of Setup and of Cleanup
}

const mostCopies = 100 // patterns

func decodeWorktrees(top Table) (w Worktrees) {
	w.Use = deref(top.Checked("worktree", oneOf(WorktreeNever, WorktreeConversation, WorktreeRun)))
	t, ok := top.Sub("worktrees")
	if !ok {
		return w
	}
	t.Only([]string{"copy", "setup", "cleanup", "timeout"})
	w.Copy = t.Texts("copy", checkPath)
	if len(w.Copy) > mostCopies {
		t.Wrong("copy", "fewer patterns", "more than 100")
	}
	w.Setup = commandOrLine(t, "setup")
	w.Cleanup = commandOrLine(t, "cleanup")
	if d := t.Duration("timeout", leastCommandTimeout, mostCommandTimeout); d != nil {
		w.Timeout = *d
	}
	return w
}

// commandOrLine returns a command that is written as a line for the shell, or as a program and its
// arguments.
func commandOrLine(t Table, key string) []string {
	if _, isLine := t.Values[key].(string); !isLine {
		return t.Command(key)
	}
	if line := t.Text(key); line != nil {
		return []string{"sh", "-c", *line}
	}
	return nil
}

// settings returns the configured values.
func (w Worktrees) settings() (out []field) {
	add := func(is bool, name string, v any) {
		if is {
			out = append(out, field{name, v})
		}
	}
	add(w.Use != "", "worktree", w.Use)
	add(w.Copy != nil, "worktrees.copy", w.Copy)
	add(w.Setup != nil, "worktrees.setup", w.Setup)
	add(w.Cleanup != nil, "worktrees.cleanup", w.Cleanup)
	add(w.Timeout != 0, "worktrees.timeout", shortDuration(w.Timeout))
	return out
}

// over returns below overridden by w.
func (w Worktrees) over(below Worktrees) Worktrees {
	if w.Use != "" {
		below.Use = w.Use
	}
	if w.Copy != nil {
		below.Copy = w.Copy
	}
	if w.Setup != nil {
		below.Setup = w.Setup
	}
	if w.Cleanup != nil {
		below.Cleanup = w.Cleanup
	}
	if w.Timeout != 0 {
		below.Timeout = w.Timeout
	}
	return below
}
