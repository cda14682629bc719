//go:build clients

package clients

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/screen"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// A dayStep is a step of a user's day, from the first prompt to the landed change. Emacs
// (emacs/test/e2e/scenarios/day.py) and VS Code (vscode/test/host/day.test.ts) play the same steps with
// other keys, and show the same words.
type dayStep struct {
	Step  string   `json:"step"`
	Says  []string `json:"says"`  // the screen has these words then, in lines of any length
	Shell []string `json:"shell"` // keys by their tmux names, or texts; the first step has the command
	Only  []string `json:"shell_says"`
}

func TestADay(t *testing.T) {
	text, err := os.ReadFile(e2e.Root + "/testdata/day.json")
	require.NoError(t, err)
	var steps []dayStep
	require.NoError(t, json.Unmarshal(text, &steps))
	st := newStage(t, "day", 80)
	git := testkit.NeedTool(t, "git")
	require.NoError(t, os.Symlink(git, filepath.Join(st.home, "bin", "git")))
	inRepository := gitIn(t, st.root)
	inRepository("init", "-q", "-b", "main")
	beginRepository(inRepository)
	require.NoError(t, os.MkdirAll(filepath.Join(st.home, ".config", "duet"), 0o755))
	st.file(".config/duet/config.toml", "worktree = \"session\"\n")
	sc := st.scene("day", steps[0].Shell[0])
	for n, step := range steps {
		if n > 0 {
			sc.presses(step.Shell...)
		}
		says := slices.Concat(step.Says, step.Only)
		sc.await(step.Step+": words are missing: "+strings.Join(says, ", "), func(lines []screen.Line) bool {
			shown := strings.Join(strings.Fields(screen.Plain(lines)), " ")
			for _, words := range says {
				if !strings.Contains(shown, words) {
					return false
				}
			}
			return true
		})
	}
	landed, err := exec.Command(git, "-C", st.root, "show", "main:demo.txt").Output()
	require.NoError(t, err)
	require.Equal(t, "Turn 2: edit again\n", string(landed))
}
