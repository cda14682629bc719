//go:build clients

package clients

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/screen"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// A stage is a tmux terminal with a fixed number of columns and its own user, Alice, in ~/parser.
// The tests compare its screens with testdata/screens.
type stage struct {
	t        *testing.T
	variant  string // suffix of its screens' names
	columns  int
	home     string
	root     string
	terminal []string // environment variables of the terminal
	seen     normalised
	tmux     func(args ...string) string
}

// lookAgain is the polling interval for a screen: tmux does not report changes of a pane.
const lookAgain = 20 * time.Millisecond

// aliceHome replaces the home directory on the screens. The real path has the same length, so that
// lines break at the same places.
const aliceHome = "/home/alice"

// player runs commands like a shell, shows them, and keeps running after their end.
const player = `alias duet-rpc='duet-rpc ` + e2e.Patiently + `'
trap : INT
for command; do
	printf '$ %s\n' "$command"
	eval "$command"
	status=$?
	[ $status = 0 ] || printf '[exit status %d]\n' $status
done
printf '$ '
exec sleep 1000`

// newStage makes a stage. Its PATH contains only duet-rpc and a few tools.
func newStage(t *testing.T, variant string, columns int, terminal ...string) *stage {
	t.Helper()
	tmux := testkit.NeedTool(t, "tmux")
	binary := e2e.FastProgram(t)
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
	// A child of another test might have a file open that this process writes, and could prevent
	// its execution (https://go.dev/issue/22315). So cp writes it.
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
			"TERM=xterm-256color", "DUET_DEMO_DELAY=0", "GORACE=" + e2e.NoRaceDelay,
		}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "tmux %v: %s", args, out)
		return string(out)
	}
	t.Cleanup(func() {
		_ = exec.Command(tmux, "-S", filepath.Join(home, "tmux"), "kill-server").Run()
		for _, root := range roots {
			stop := exec.Command(binary, "--root", root, "daemon", "stop", "--force") // after a failed test
			stop.Env = []string{"HOME=" + home}
			_ = stop.Run()
		}
	})
	return st
}

func (st *stage) file(name, text string) {
	st.t.Helper()
	path := filepath.Join(st.home, name)
	e2e.WriteFile(st.t, path, text)
}

// plays returns the configuration of an agent that performs these steps in each turn.
func (st *stage) plays(agent string, steps ...e2e.PlayedStep) (configuration string) {
	st.t.Helper()
	return e2e.Played(st.t, st.home, agent, steps...)
}

// A scene is a window in which commands run one after the other.
type scene struct {
	*stage
	name string
}

// scene starts a scene with commands.
func (st *stage) scene(name string, commands ...string) *scene {
	st.t.Helper()
	args := []string{"new-session", "-d", "-s", name, "-x", fmt.Sprint(st.columns), "-y", "24", "env", "--"}
	args = append(append(args, st.terminal...), "sh", filepath.Join(st.home, "player"))
	st.tmux(append(args, commands...)...)
	return &scene{st, name}
}

// shows runs a scene's commands to their end and compares its screen.
func (st *stage) shows(name string, commands ...string) {
	st.t.Helper()
	sc := st.scene(name, commands...)
	sc.ends()
	sc.is(name)
}

// lines returns all lines of the window, including the scrolled ones.
func (sc *scene) lines() []screen.Line {
	sc.t.Helper()
	return screen.Parse(sc.tmux("capture-pane", "-p", "-e", "-J", "-S", "-", "-t", "="+sc.name+":"))
}

// waits waits until the last line ends with a text and the screen has the other texts. Then the
// program waits for keys.
func (sc *scene) waits(last string, others ...string) {
	sc.t.Helper()
	sc.await(fmt.Sprintf("the last line does not end with %q, or one of %q is missing", last, others), func(lines []screen.Line) bool {
		text := screen.Plain(lines)
		for _, other := range others {
			if !strings.Contains(text, other) {
				return false
			}
		}
		return strings.HasSuffix(strings.TrimRight(text, "\n"), strings.TrimRight(last, " "))
	})
}

// ends waits for the end of all commands.
func (sc *scene) ends() {
	sc.t.Helper()
	sc.await("the commands do not end", func(lines []screen.Line) bool { return len(lines) > 1 && lines[len(lines)-1].Text() == "$" })
}

// await waits until a condition on the screen holds. It polls at the interval [lookAgain].
func (sc *scene) await(why string, wanted func([]screen.Line) bool) {
	sc.t.Helper()
	for deadline := time.Now().Add(e2e.Watchdog / 3); ; time.Sleep(lookAgain) {
		lines := sc.lines()
		if wanted(lines) {
			return
		}
		if time.Now().After(deadline) {
			sc.t.Fatalf("%s: %s:\n%s", sc.name, why, screen.Plain(lines))
		}
	}
}

// presses sends keys by their tmux names, or a text.
func (sc *scene) presses(keys ...string) {
	sc.t.Helper()
	sc.tmux(append([]string{"send-keys", "-t", "=" + sc.name + ":"}, keys...)...)
}

// is compares the text and the colours of the screen with the golden files.
func (sc *scene) is(name string) {
	sc.t.Helper()
	var lines []screen.Line
	for _, l := range sc.lines() {
		if l = sc.seen.normalise(l, sc.home); l.Text() != tookAlone {
			lines = append(lines, l)
		}
	}
	lines = screen.Wrap(lines, sc.columns)
	path := e2e.Root + "/testdata/screens/" + name + "-" + sc.variant
	sc.t.Run(name, func(t *testing.T) { // a subtest compares or writes each screen
		testkit.GoldenBytes(t, path+".txt", []byte(screen.Plain(lines)))
		testkit.GoldenBytes(t, path+".ansi", []byte(screen.Colored(lines)))
	})
}

// normalised replaces parts of screens that differ between days and machines.
type normalised struct {
	ids map[string]string // replacement by id, or by the first part of an id
}

var identifiers = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})?\b`)

// others are patterns of variable text, each with a replacement that may be longer.
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
	{regexp.MustCompile(`\b\d+ clients?$`), "1 client"}, // the count may still include a client that has left
	{regexp.MustCompile(`\b(answered in) \d+(\.\d+)?m?s`), "$1 14ms"},
	{regexp.MustCompile(`\b\d+\.\d MB`), "0.3 MB"},
	{regexp.MustCompile(`\(go1\.\S+ linux/\w+\)`), "(go1.26.0 linux/amd64)"},
}

// took matches the duration of a turn, which the program prints only for long turns.
var took = regexp.MustCompile(`^(—|--) (\d+(\.\d+)? s|\d+ min \d+ s)\b`)

const tookAlone = "took"

// ages matches ages in table columns, where the replacement keeps their width.
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

// identifier returns the replacement of an id. The first one is a0000001.
func (n *normalised) identifier(id string) string {
	if id == "10485760" { // the maximum size of a message, not an id
		return id
	}
	known := id[:8]
	if len(id) > 8 && id[14] == '7' { // version 7 begins with the time, so ids of one minute share their first part
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
