//go:build linux && soak

// Package crash tests the built program against power cuts.
//
// It records a day of a daemon with strace: what it and git write, sync and rename, and what it
// acknowledges. From the recording it makes the states that a disk may have after a power cut at any
// time: what is synced is there, and of the rest any part, down to the single page. A new daemon opens
// each state, and the test judges it: all that was acknowledged is there, once; the log has no gap;
// SQLite and git find no damage; the user's files, index and references are as before or after the
// interrupted step.
//
// `make crash` judges states for ten minutes. A state that fails is printed with the command that
// makes and judges it again, and nothing else.
package crash

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

var (
	crashTime      = flag.Duration("crash.time", 30*time.Second, "how long TestCrash judges states")
	crashSeed      = flag.Uint64("crash.seed", 0, "the seed of TestCrash; 0: another one each time")
	crashKeep      = flag.String("crash.keep", "", "where the files of states that fail go; empty: nowhere")
	crashRecording = flag.String("crash.recording", "", "the directory of a recording that was kept")
	crashState     = flag.String("crash.state", "", "judge this state of it alone, such as 1234:random:7")
)

// program is the path of the tested binary.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "duet-crash-bin")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "duet-rpc")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "github.com/duet-rpc/duet-rpc/cmd/duet-rpc")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// A day of a daemon survives a power cut at any time.
func TestCrash(t *testing.T) {
	testkit.NeedTool(t, "strace")
	testkit.NeedTool(t, "git")
	if *crashState != "" {
		repeat(t, *crashState)
		return
	}
	seed := *crashSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-crash.seed %d", seed)
	for worker := range runtime.NumCPU() {
		t.Run(fmt.Sprintf("worker %d", worker), func(t *testing.T) {
			t.Parallel()
			list := days(t)
			r := rand.New(rand.NewPCG(seed, uint64(worker)))
			all := 0
			for _, day := range list {
				all += len(day.lines())
			}
			for _, day := range list {
				day.judgeStates(r, *crashTime*time.Duration(len(day.lines()))/time.Duration(all))
			}
		})
	}
}

// topOf returns a directory in memory, if there is one: states are written thousands of times.
func topOf(t *testing.T) string {
	parent := ""
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() && os.Getenv("TMPDIR") == "" {
		parent = "/dev/shm"
	}
	dir, err := os.MkdirTemp(parent, "duet-crash")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	dir, err = filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	return dir
}

// days records the daemon's days. The second one begins with a database of an older version, and in the
// third one the project is moved. On the fourth one, in a project of its own, several clients work at once.
func days(t *testing.T) []*recording {
	m, dir := newMachine(t, topOf(t)), topOf(t)
	next := func(name string) string {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		return filepath.Join(dir, name)
	}
	m.configure(program, "demo-agent")
	work := m.record(next("work"), "work", nil, day)
	m.makeOlder()
	upgrade := m.record(next("upgrade"), "upgrade", work.Promises, nextDay)
	move := m.recordMove(next("move"), upgrade.Promises)
	many := newMachine(t, topOf(t))
	many.configure(program, "demo-agent")
	return []*recording{work, upgrade, move, many.record(next("clients"), "clients", nil, clientsDay)}
}

// A point is a state: a power cut before a line, which loses some of what is not synced.
type point struct {
	line   int
	lost   loss
	number uint64 // the seed of the choice
}

func (p point) String() string { return fmt.Sprintf("%d:%v:%d", p.line, p.lost, p.number) }

func (d *recording) judgePoint(p point) []string {
	return d.judge(d.disk.cut(p.line, p.lost, rand.New(rand.NewPCG(uint64(p.line), p.number))).files(), p.line)
}

// judgeStates judges random states of a recording for a time.
func (d *recording) judgeStates(r *rand.Rand, limit time.Duration) {
	t := d.m.t
	began, n, broken, kept := time.Now(), 0, 0, ""
	lines := d.lines()
	t.Logf("%s: %d changes, %d syncs, %d promises, %d events", d.Name, len(d.disk.ops), len(d.disk.syncs), len(d.Promises), len(d.events()))
	seen := make(map[point]bool)
	for time.Since(began) < limit && broken < 10 {
		p := point{lines[r.IntN(len(lines))], loss(r.IntN(4)), r.Uint64N(1000)}
		if p.lost == all || p.lost == none {
			p.number = 0
		}
		if seen[p] {
			continue
		}
		seen[p] = true
		n++
		if found := d.judgePoint(p); len(found) > 0 {
			broken++
			if kept == "" {
				kept = d.keep()
			}
			t.Errorf("%s, %s: %s\nto repeat it: make crash CRASHFLAGS='-crash.recording %s -crash.state %v'", d.Name, d.stepAt(p.line), strings.Join(found, "\n\t"), kept, p)
		}
	}
	t.Logf("%s: %d states in %v", d.Name, n, time.Since(began).Round(time.Millisecond))
}

// keep copies the recording to a directory that outlives the test.
func (d *recording) keep() string {
	to := *crashKeep
	if to == "" {
		var err error
		to, err = os.MkdirTemp("", "duet-crash-kept")
		require.NoError(d.m.t, err)
	}
	to = filepath.Join(to, fmt.Sprintf("%s-%d", d.Name, time.Now().UnixNano()))
	require.NoError(d.m.t, os.MkdirAll(to, 0o700))
	out, err := exec.Command("cp", "-a", d.dir+"/.", to).CombinedOutput() // pipes, too
	require.NoError(d.m.t, err, "%s", out)
	return to
}

// repeat judges one state of a recording that was kept.
func repeat(t *testing.T, state string) {
	require.NotEmpty(t, *crashRecording, "-crash.state needs -crash.recording")
	d := load(t, *crashRecording)
	var p point
	var lost string
	_, err := fmt.Sscanf(strings.ReplaceAll(state, ":", " "), "%d %s %d", &p.line, &lost, &p.number)
	require.NoError(t, err)
	for p.lost.String() != lost {
		p.lost++
	}
	found := d.judgePoint(p)
	t.Logf("the state is in %s", d.Top)
	require.Empty(t, found)
}

// The test finds a sync that is missing, and a response that comes too early.
func TestFindsWhatIsMissing(t *testing.T) {
	testkit.NeedTool(t, "strace")
	testkit.NeedTool(t, "git")
	list := days(t)
	day, clients := list[0], list[3]
	// judgePromises judges the moment of each response, with the loss of all that was not synced.
	judgePromises := func(day *recording) (found []string) {
		for _, p := range day.Promises {
			if p.From > 0 {
				found = append(found, day.judgePoint(point{line: p.From + 1, lost: all})...)
			}
			if len(found) > 0 {
				break
			}
		}
		return found
	}
	require.Empty(t, judgePromises(day))
	require.Empty(t, judgePromises(clients))
	without := func(day *recording, is func(path string) bool) string {
		syncs := day.disk.syncs
		day.disk.syncs = slices.DeleteFunc(slices.Clone(syncs), func(s sync) bool { return is(s.path) })
		require.Less(t, len(day.disk.syncs), len(syncs))
		day.disk.settle()
		found := judgePromises(day)
		assert.NotEmpty(t, found)
		day.disk.syncs = syncs
		day.disk.settle()
		return strings.Join(found, "\n")
	}
	t.Run("synchronous=NORMAL", func(t *testing.T) {
		without(day, func(path string) bool { return strings.HasSuffix(path, "-wal") })
	})
	t.Run("synchronous=NORMAL under several clients", func(t *testing.T) {
		without(clients, func(path string) bool { return strings.HasSuffix(path, "-wal") })
	})
	t.Run("trust is not synced", func(t *testing.T) {
		dir := filepath.Dir(clients.m.trust.Path())
		found := without(clients, func(path string) bool {
			return filepath.Dir(path) == dir && strings.HasPrefix(filepath.Base(path), ".duet-")
		})
		assert.Contains(t, found, "trusted.json is damaged")
	})
	t.Run("a rewind does not sync its files", func(t *testing.T) {
		without(day, func(path string) bool {
			return path == day.m.project || strings.HasPrefix(path, day.m.project+"/") && !strings.Contains(path, ".git/")
		})
	})
	t.Run("git does not sync", func(t *testing.T) {
		without(day, func(path string) bool { return strings.Contains(path, "/.git") })
	})
	t.Run("responses before commits", func(t *testing.T) {
		for _, p := range day.Promises {
			for _, s := range slices.Backward(day.Steps) {
				if s.End < p.From {
					p.From = s.End
					break
				}
			}
		}
		assert.NotEmpty(t, judgePromises(day))
	})
}

// lines returns the lines at which a power cut can leave another state: behind each sync and each
// response, and behind each change.
func (d *recording) lines() (lines []int) {
	for _, s := range d.disk.syncs {
		lines = append(lines, s.done+1)
	}
	for _, p := range d.Promises {
		lines = append(lines, p.From+1, p.From+1, p.From+1)
	}
	for _, o := range d.disk.ops {
		lines = append(lines, o.began+1)
	}
	return lines
}

func (d *recording) stepAt(line int) string {
	for i, s := range d.Steps {
		if line <= s.End {
			return fmt.Sprintf("step %d, %s", i+1, s.Name)
		}
	}
	return "after the last step"
}
