// Package main_test tests the program as an editor meets it: the binary, its
// pipes, its signals and its exit status.
package main_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/store/storetest"
)

// testVersion is the version that the tested binaries are linked with.
const testVersion = "0.0.0-test"

var (
	programDir string // the directory of the binaries, for PATH
	program    string // the binary, with the race detector if the tests use it
)

func TestMain(m *testing.M) {
	if playRecordingAgent() {
		return
	}
	if play := os.Getenv(playedVariable); play != "" {
		playAgent(play)
		return
	}
	if dir := os.Getenv(keepingVariable); dir != "" {
		keepSessions(dir, os.Getenv(keepingAbilities))
		return
	}
	flag.Parse()
	storetest.InMemory()
	waitInParallel()
	os.Exit(runTests(m))
}

// waitInParallel raises the number of parallel tests above the number of processors, unless a flag
// sets it. Most tests wait for a process.
func waitInParallel() {
	parallel := flag.Lookup("test.parallel")
	if parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set(strconv.Itoa(4 * runtime.GOMAXPROCS(0)))
	}
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "duet-rpc-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programDir = dir
	program = filepath.Join(dir, executable("duet-rpc"))
	if err := build(program, raceEnabled); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// translated lists the packages of SQLite, which are C code translated to Go. The build leaves the
// race detector out of them: it would slow each use of a database many times.
var translated = []string{"modernc.org/sqlite/lib", "modernc.org/libc", "modernc.org/memory"}

func build(path string, race bool) error {
	args := []string{"build", "-trimpath", "-ldflags", "-X main.version=" + testVersion, "-o", path}
	if race {
		args = append(args, "-race")
		for _, name := range translated {
			args = append(args, "-gcflags="+name+"=-race=false")
		}
	}
	cmd := exec.Command("go", append(args, ".")...)
	if cmd.Env = os.Environ(); !race {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0") // as in make build and make test, which share the compiled packages
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// fastProgram returns the binary without the race detector, which slows the program and enlarges
// its memory.
func fastProgram(t testing.TB) string {
	t.Helper()
	path, err := buildFast()
	require.NoError(t, err)
	return path
}

var buildFast = sync.OnceValues(func() (string, error) {
	if !raceEnabled {
		return program, nil
	}
	path := filepath.Join(programDir, executable("duet-rpc-fast"))
	return path, build(path, false)
})

func executable(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}
