// Package e2e starts the program as editors, shells and other clients do, for the tests below it.
package e2e

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

// Version is the version that the tested binaries are linked with.
const Version = "0.0.0-test"

// Root leads from the directory of a package below this one to the repository's.
const Root = "../../.."

// What Main has built.
var (
	ProgramDir string // the directory of the binaries, for PATH
	Program    string // the binary, with the race detector if the tests use it
)

// Main runs the tests of a package, and is its TestMain. It builds the program once. The test binary
// also plays the agents of testagents.go and lines to hosts, which a variable of the environment asks for.
func Main(m *testing.M) {
	if playRecordingAgent() || playKillingLine() {
		return
	}
	if play := os.Getenv(playedVariable); play != "" {
		playAgent(play)
		return
	}
	if dir := os.Getenv(KeepingVariable); dir != "" {
		keepSessions(dir, os.Getenv(KeepingAbilities))
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
	ProgramDir = dir
	Program = filepath.Join(dir, executable("duet-rpc"))
	if err := build(Program, RaceEnabled); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// translated lists the packages of SQLite, which are C code translated to Go. The build leaves the
// race detector out of them: it would slow each use of a database many times.
var translated = []string{"modernc.org/sqlite/lib", "modernc.org/libc", "modernc.org/memory"}

func build(path string, race bool) error {
	args := []string{"build", "-trimpath", "-ldflags", "-X main.version=" + Version, "-o", path}
	if race {
		args = append(args, "-race")
		for _, name := range translated {
			args = append(args, "-gcflags="+name+"=-race=false")
		}
	}
	cmd := exec.Command("go", append(args, "github.com/duet-rpc/duet-rpc/cmd/duet-rpc")...)
	if cmd.Env = os.Environ(); !race {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0") // as in make build and make test, which share the compiled packages
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// FastProgram returns the binary without the race detector, which slows the program and enlarges
// its memory.
func FastProgram(t testing.TB) string {
	t.Helper()
	path, err := buildFast()
	require.NoError(t, err)
	return path
}

var buildFast = sync.OnceValues(func() (string, error) {
	if !RaceEnabled {
		return Program, nil
	}
	path := filepath.Join(ProgramDir, executable("duet-rpc-fast"))
	return path, build(path, false)
})

func executable(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}
