//go:build clients

package clients

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
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
	Do    string   `json:"do"`    // what happens besides the keys: "kill the daemon"
	Says  []string `json:"says"`  // the screen has these words then, in lines of any length
	Shell []string `json:"shell"` // keys by their tmux names, or texts
	Only  []string `json:"shell_says"`
}

// oneKey matches a key of a question, such as "[y] Allow".
var oneKey = regexp.MustCompile(`^\[.\] `)

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
	st.file("parser/README", "hello\n")
	inRepository("add", ".")
	inRepository("commit", "-q", "-m", "the README")
	require.NoError(t, os.MkdirAll(filepath.Join(st.home, ".config", "duet"), 0o755))
	st.file(".config/duet/config.toml", "worktree = \"session\"\n")
	st.file("aliases", "alias duet-rpc='duet-rpc "+e2e.Patiently+"'\n")
	sc := st.scene("day", "exec env 'PS1=$ ' ENV=$HOME/aliases sh -i") // the user's shell
	for _, step := range steps {
		if step.Do == "kill the daemon" {
			killDaemon(t, st.home)
		}
		if len(step.Shell) > 0 {
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
			asks := slices.ContainsFunc(says, func(words string) bool { return oneKey.MatchString(words) })
			return !asks || strings.HasSuffix(shown, ":") // the question of this step, not an earlier one
		})
	}
	landed, err := exec.Command(git, "-C", st.root, "show", "main:demo.txt").Output()
	require.NoError(t, err)
	require.Equal(t, "Turn 2: edit again\nTurn 1: fail early in May\n", string(landed), screen.Plain(sc.lines()))
}

// killDaemon kills the only daemon of the user with this home directory.
func killDaemon(t *testing.T, home string) {
	t.Helper()
	locks, err := filepath.Glob(filepath.Join(home, ".local/state/duet/projects/*/lock"))
	require.NoError(t, err)
	require.Len(t, locks, 1)
	text, err := os.ReadFile(locks[0])
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}
