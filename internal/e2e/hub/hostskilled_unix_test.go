//go:build unix

package hub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// A killingSite has the hosts one and two, and box, of which each session has its own. Their lines kill a process at a step.
type killingSite struct {
	farSite
	git   func(args ...string) string
	steps string // the directory of e2e.KillingLine
}

func newKillingSite(t *testing.T) killingSite {
	t.Helper()
	f, git := newSendingSite(t)
	k := killingSite{f, git, filepath.Join(f.Home, "steps")}
	require.NoError(t, os.Mkdir(k.steps, 0o700))
	line := fmt.Sprintf(`"env", "%s=%s", %q`, e2e.KillingLine, k.steps, os.Args[0])
	var hosts strings.Builder
	for _, name := range []string{"one", "two"} {
		fmt.Fprintf(&hosts, "[hosts.%s]\ncommand = [%s]\n", name, line)
		fmt.Fprintf(&hosts, "directory = %q\nprogram = %q\n", filepath.Join(f.Home, name), e2e.Program)
	}
	boxes := filepath.Join(f.Home, "boxes")
	fmt.Fprintf(&hosts, `[hosts.box]
command = ["sh", "-c", 'cd %[1]s/"$0" || exit; unset XDG_STATE_HOME; HOME=$PWD; export HOME; exec "$@"', "{host}", %[2]s]
start = ["mkdir", "-p", "%[1]s/{host}"]
stop = [%[2]s, "sh", "-c", 'cd %[1]s/"$0" || exit 0; unset XDG_STATE_HOME; HOME=$PWD %[3]s --root %[4]s daemon stop; rm -rf "$PWD"', "{host}"]
directory = "there"
program = %[3]q
per = "session"
`, boxes, line, e2e.Program, "there/"+filepath.Base(f.Root))
	f.Agents(hosts.String())
	return k
}

// killed runs a command that is killed at a step.
func (k killingSite) killed(step string, args ...string) {
	k.T.Helper()
	for _, path := range must(filepath.Glob(filepath.Join(k.steps, "step *")))(k.T) {
		require.NoError(k.T, os.Remove(path))
	}
	e2e.WriteFile(k.T, filepath.Join(k.steps, "kill"), step)
	cmd := exec.Command("sh", append([]string{"-c", `echo $$ >` + k.steps + `/pid; exec "$@"`, "sh", e2e.Program}, args...)...)
	cmd.Dir = k.Root
	cmd.Env = slices.Concat(e2e.CleanEnvironment(), e2e.Homeless(k.T), k.Launch().Env, []string{"DUET_ROOT=", "PWD=" + k.Root})
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	_ = cmd.Run()
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(k.T, status.Signaled(), "%s does not come: %s", step, said.String())
	require.NoError(k.T, os.Remove(filepath.Join(k.steps, "kill")))
}

func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return value
	}
}

// drafts returns how many drafts a daemon has. Of a host it is that of the project there.
func (k killingSite) drafts(at ...string) int {
	k.T.Helper()
	var list struct{ Sessions []json.RawMessage }
	out, errs, err := k.CommandIn(k.Root, append(at, "call", "session.list", `{"filter":"draft"}`)...)
	if err != nil {
		require.Contains(k.T, errs, "no sessions")
		return 0
	}
	require.NoError(k.T, json.Unmarshal([]byte(out), &list))
	return len(list.Sessions)
}

// known returns the sessions on hosts of which something is here: their records and their refs.
func (k killingSite) known() (records, refs []string) {
	k.T.Helper()
	for _, path := range must(filepath.Glob(filepath.Join(k.Root, ".git", "duet", "hosts", "*")))(k.T) {
		records = append(records, filepath.Base(path))
	}
	refs = strings.Fields(strings.ReplaceAll(k.git("for-each-ref", "--format=%(refname)", "refs/duet/hosts"), "refs/duet/hosts/", ""))
	return records, refs
}

func (k killingSite) boxes() []string {
	k.T.Helper()
	return must(filepath.Glob(filepath.Join(k.Home, "boxes", "*")))(k.T)
}

// A command is killed while it starts attempts on hosts. No list shows what it leaves, and the next start deletes it. An attempt
// that has begun is in the list.
func TestKilledStartOfAttemptsLeavesNoDrafts(t *testing.T) {
	k := newKillingSite(e2e.Parallel(t))
	start := func(words string) []string {
		return []string{"prompt", "--agents", "scripted@one,scripted@two,scripted@box,scripted", "--yes", words}
	}
	steps := []string{"receive 1", "receive ended 2", "session.start 3"}
	if testkit.Soak {
		steps = append(steps, "session.start 1", "host.connect 2", "turn.get 3")
	}
	steps = append(steps, "session.prompt 1", "session.delete 1") // by which the next start deletes a draft
	for _, step := range steps {
		k.killed(step, start("write "+step)...)
		list, _, err := k.CommandIn(k.Root, "session", "list")
		if err == nil {
			assert.NotContains(t, list, "draft", step)
			assert.NotContains(t, list, "@", "%s: no attempt on a host has begun", step)
		}
	}
	k.killed("session.prompt 2", start("write partly")...)
	list := k.RunIn(k.Root, "session", "list")
	assert.Equal(t, 1, strings.Count(list, "@"), list)
	assert.Contains(t, list, "write partly")

	k.RunIn(k.Root, start("write it")...)
	assert.Zero(t, k.drafts())
	assert.Zero(t, k.drafts("--host", "one"))
	assert.Zero(t, k.drafts("--host", "two"))
	records, refs := k.known()
	assert.Len(t, records, 4, "the attempt that has begun, and three")
	assert.Equal(t, records, refs)
	assert.Len(t, k.boxes(), 1)
	list = k.RunIn(k.Root, "session", "list")
	assert.Equal(t, 4, strings.Count(list, "@"), list)
	assert.Equal(t, 2, strings.Count(k.RunIn(k.Root, "hosts", "--names"), "box"), "[hosts.box] and one container")
	k.leaveBoxes()
}

// leaveBoxes removes the containers.
func (k killingSite) leaveBoxes() {
	k.T.Helper()
	for name := range strings.Lines(k.RunIn(k.Root, "hosts", "--names")) {
		if name = strings.TrimSpace(name); strings.HasPrefix(name, "box-") {
			k.RunIn(k.Root, "hosts", "stop", "--force", name)
		}
	}
	assert.Empty(k.T, k.boxes())
}

// A command is killed while it lands an attempt and discards the others. The same command again completes it.
func TestKilledChoiceOfAnAttemptIsRepeated(t *testing.T) {
	k := newKillingSite(e2e.Parallel(t))
	k.RunIn(k.Root, "prompt", "--agents", "scripted@one,scripted@two,scripted@box,scripted", "--yes", "write it")
	choose := []string{"land", "1@one", "--discard-others", "--yes"}
	before := k.git("rev-parse", "main")
	steps := []string{"upload 1", "session.save 2", "session.discard 1", "sh 1", "sh ended 1", "upload 2"}
	if testkit.Soak {
		steps = []string{
			"session.save 1", "upload 1", "upload ended 1", "session.save 2", // the landing
			"session.save 3", "upload 2", "session.discard 1", "host.describe 1", "sh 1", "sh ended 1", // the attempt in a container
			"session.save 3", "upload 2", "session.discard 1",
		}
	}
	for _, step := range steps {
		k.killed(step, choose...)
		assert.Empty(t, k.git("status", "--porcelain"), step)
	}
	out := k.RunIn(k.Root, choose...)
	assert.NotContains(t, out, "stays")
	assert.Equal(t, before, k.git("rev-parse", "main^1"), "it is landed once")
	assert.FileExists(t, filepath.Join(k.Root, "demo.txt"))
	assert.Empty(t, k.boxes())
	list := k.RunIn(k.Root, "attempts")
	assert.Regexp(t, `1\.1 .*the worktree was discarded`, list)
	assert.NotRegexp(t, "@two|@box", list, "their work is what landed")
	assert.NotContains(t, k.RunIn(k.Root, choose...), "discarded", "nothing is left to discard")
	assert.NotContains(t, k.RunIn(k.Root, "hosts", "--names"), "box-")
}
