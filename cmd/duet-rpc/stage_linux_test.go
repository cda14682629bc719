//go:build clients

package main_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/screen"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// A stage is a terminal of so many columns, in tmux, with a user of its own: Alice,
// who works in ~/parser. What she sees is compared with testdata/screens.
type stage struct {
	t        *testing.T
	variant  string // what the names of its screens end with
	columns  int
	home     string
	root     string
	terminal []string // variables that say what the terminal is
	seen     normalised
	tmux     func(args ...string) string
}

// lookAgain is how often a screen is looked at that is waited for: tmux does not report
// when what a pane shows has changed.
const lookAgain = 20 * time.Millisecond

// aliceHome is what her home is called on the screens. The true one has as many
// letters: lines break where they would.
const aliceHome = "/home/alice"

// player runs commands as a shell does, and shows them; it stays when they have ended.
const player = `alias duet-rpc='duet-rpc ` + patiently + `'
trap : INT
for command; do
	printf '$ %s\n' "$command"
	eval "$command"
	status=$?
	[ $status = 0 ] || printf '[exit status %d]\n' $status
done
printf '$ '
exec sleep 1000`

// newStage makes one. No program of this machine is found in it but those of its own.
func newStage(t *testing.T, variant string, columns int, terminal ...string) *stage {
	t.Helper()
	tmux := testkit.NeedTool(t, "tmux")
	binary := fastProgram(t)
	home := "/tmp/" + strings.ToLower(rand.Text()[:6])
	require.Len(t, home, len(aliceHome))
	require.NoError(t, os.Mkdir(home, 0o700))
	t.Cleanup(func() { os.RemoveAll(home) })
	st := &stage{t: t, variant: variant, columns: columns, home: home, root: filepath.Join(home, "parser"), terminal: terminal, seen: normalised{ids: make(map[string]string)}}
	roots := []string{st.root, filepath.Join(home, "notes")}
	for _, dir := range []string{filepath.Join(roots[0], ".git"), filepath.Join(roots[1], ".git"), filepath.Join(home, "bin")} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	for _, tool := range []string{"sh", "cat", "less", "sleep", "env", "true", "tr", "grep", "test"} {
		if path, err := exec.LookPath(tool); err == nil {
			require.NoError(t, os.Symlink(path, filepath.Join(home, "bin", tool)))
		}
	}
	// Written by this process it might be open for that in a child of another test, and
	// could not be run (https://go.dev/issue/22315).
	out, err := exec.Command("cp", binary, filepath.Join(home, "bin", "duet-rpc")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	st.file("player", player)
	st.file("tmux.conf", "set -g default-terminal tmux-256color\nset -g status off\nset -g remain-on-exit on\nset -g history-limit 10000\n")
	st.tmux = func(args ...string) string {
		t.Helper()
		cmd := exec.Command(tmux, append([]string{"-u", "-S", filepath.Join(home, "tmux"), "-f", filepath.Join(home, "tmux.conf")}, args...)...)
		cmd.Dir = st.root
		cmd.Env = []string{
			"HOME=" + home, "PATH=" + filepath.Join(home, "bin"), "LC_ALL=C.UTF-8", "TZ=UTC", "SHELL=/bin/sh", "USER=alice", "LESS=-R",
			"TERM=xterm-256color", "DUET_DEMO_DELAY=0", "GORACE=" + noRaceDelay,
		}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "tmux %v: %s", args, out)
		return string(out)
	}
	t.Cleanup(func() {
		_ = exec.Command(tmux, "-S", filepath.Join(home, "tmux"), "kill-server").Run()
		for _, root := range roots {
			stop := exec.Command(binary, "--root", root, "daemon", "stop", "--force") // of a test that has failed
			stop.Env = []string{"HOME=" + home}
			_ = stop.Run()
		}
	})
	return st
}

func (st *stage) file(name, text string) {
	st.t.Helper()
	path := filepath.Join(st.home, name)
	writeFile(st.t, path, text)
}

// plays configures an agent that does these steps in each turn, beside the demo agent.
func (st *stage) plays(agent string, steps ...playedStep) (configuration string) {
	st.t.Helper()
	self, err := os.Executable()
	require.NoError(st.t, err)
	raw, err := json.Marshal(steps)
	require.NoError(st.t, err)
	st.file(agent+".json", string(raw))
	return fmt.Sprintf("[agents.%s]\ndriver = \"acp\"\ncommand = [%q]\nenv = { %s = %q }\n", agent, self, playedVariable, filepath.Join(st.home, agent+".json"))
}

// A scene is a window in which commands run one after the other.
type scene struct {
	*stage
	name string
}

// scene begins one.
func (st *stage) scene(name string, commands ...string) *scene {
	st.t.Helper()
	args := []string{"new-session", "-d", "-s", name, "-x", fmt.Sprint(st.columns), "-y", "24", "env", "--"}
	args = append(append(args, st.terminal...), "sh", filepath.Join(st.home, "player"))
	st.tmux(append(args, commands...)...)
	return &scene{st, name}
}

// shows is a scene whose commands run to their end, and what is to be seen then.
func (st *stage) shows(name string, commands ...string) {
	st.t.Helper()
	sc := st.scene(name, commands...)
	sc.ends()
	sc.is(name)
}

// lines are all lines of the window, also those that have scrolled away.
func (sc *scene) lines() []screen.Line {
	sc.t.Helper()
	return screen.Parse(sc.tmux("capture-pane", "-p", "-e", "-J", "-S", "-", "-t", "="+sc.name+":"))
}

// waits waits until the last line ends with a text, and others are seen: the program
// waits for keys then.
func (sc *scene) waits(last string, others ...string) {
	sc.t.Helper()
	sc.await(fmt.Sprintf("no last line ends with %q, or not all of %q is there", last, others), func(lines []screen.Line) bool {
		text := screen.Plain(lines)
		for _, other := range others {
			if !strings.Contains(text, other) {
				return false
			}
		}
		return strings.HasSuffix(strings.TrimRight(text, "\n"), strings.TrimRight(last, " "))
	})
}

// ends waits until all its commands have ended.
func (sc *scene) ends() {
	sc.t.Helper()
	sc.await("it goes on", func(lines []screen.Line) bool { return len(lines) > 1 && lines[len(lines)-1].Text() == "$" })
}

// await waits until the screen is as it is wanted. It has to look again and again, see
// [lookAgain].
func (sc *scene) await(why string, wanted func([]screen.Line) bool) {
	sc.t.Helper()
	for deadline := time.Now().Add(watchdog / 3); ; time.Sleep(lookAgain) {
		lines := sc.lines()
		if wanted(lines) {
			return
		}
		if time.Now().After(deadline) {
			sc.t.Fatalf("%s: %s:\n%s", sc.name, why, screen.Plain(lines))
		}
	}
}

// presses presses keys, as tmux names them, or types a text.
func (sc *scene) presses(keys ...string) {
	sc.t.Helper()
	sc.tmux(append([]string{"send-keys", "-t", "=" + sc.name + ":"}, keys...)...)
}

// is requires that what is seen is what the golden files say: the words, and how they
// look.
func (sc *scene) is(name string) {
	sc.t.Helper()
	var lines []screen.Line
	for _, l := range sc.lines() {
		if l = sc.seen.normalise(l, sc.home); l.Text() != tookAlone {
			lines = append(lines, l)
		}
	}
	lines = screen.Wrap(lines, sc.columns)
	path := "../../testdata/screens/" + name + "-" + sc.variant
	sc.t.Run(name, func(t *testing.T) { // each is compared, or written
		testkit.GoldenBytes(t, path+".txt", []byte(screen.Plain(lines)))
		testkit.GoldenBytes(t, path+".ansi", []byte(screen.Colored(lines)))
	})
}

// normalised is what differs from one day and one machine to the next, written as if it
// did not, and as wide.
type normalised struct {
	ids map[string]string // what each is called, whole or its beginning
}

var identifiers = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})?\b`)

// others are parts of texts, each with what stands for it, which may be longer.
var others = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\b`), "2026-01-02 03:04:05"},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\d\b`), "2026-01-02"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d(\.\d+)?\b`), "03:04:05"},
	{regexp.MustCompile(`^— (took · )?(\d+ tokens)`), "— 4.2 s · $2"},
	{regexp.MustCompile(`^-- (took - )?(\d+ tokens)`), "-- 4.2 s - $2"},
	{regexp.MustCompile(`^(time +)\d.*`), "${1}4.2 s"},
	{regexp.MustCompile(`\b(pid|process) \d+`), "$1 4711"},
	{regexp.MustCompile(`\bup \d+\w+(, healthy)`), "up 5s$1"},
	{regexp.MustCompile(`\b\d+[smh] ago`), "5s ago"},
	{regexp.MustCompile(`\b\d+ clients?$`), "1 client"}, // one that has gone may be counted still
	{regexp.MustCompile(`\b(answered in) \d+(\.\d+)?m?s`), "$1 14ms"},
	{regexp.MustCompile(`\b\d+\.\d MB`), "0.3 MB"},
	{regexp.MustCompile(`\(go1\.\S+ linux/\w+\)`), "(go1.26.0 linux/amd64)"},
}

// took is how long a turn took, which is only said where it took a while.
var took = regexp.MustCompile(`^(—|--) (\d+(\.\d+)? s|\d+ min \d+ s)\b`)

const tookAlone = "took"

// ages are in columns of tables, in which they take some room.
var ages = regexp.MustCompile(`  \d+[smh]( *  |$)`)

func (n *normalised) normalise(l screen.Line, home string) screen.Line {
	l = l.Replace(regexp.MustCompile(regexp.QuoteMeta(home)), func(string) string { return aliceHome })
	l = l.Replace(identifiers, n.identifier)
	l = l.Replace(took, func(text string) string {
		if text == l.Text() {
			return tookAlone
		}
		return strings.Fields(text)[0] + " took"
	})
	for _, o := range others {
		l = l.Replace(o.pattern, func(text string) string { return o.pattern.ReplaceAllString(text, o.instead) })
	}
	return l.Replace(ages, func(age string) string {
		if strings.HasSuffix(age, " ") {
			return fmt.Sprintf("%-*s", len(age), "  5s")
		}
		return "  5s"
	})
}

// identifier is what an id is called, the first a0000001.
func (n *normalised) identifier(id string) string {
	if id == "10485760" { // the longest message
		return id
	}
	known := id[:8]
	if len(id) > 8 && id[14] == '7' { // version 7 begins with the time: two of one minute would be one
		known = id
	}
	if n.ids[known] == "" {
		n.ids[known] = fmt.Sprintf("a%07d", len(n.ids)+1)
	}
	if len(id) == 8 {
		return n.ids[known]
	}
	return n.ids[known] + "-0000-4000-8000-000000000000"
}
