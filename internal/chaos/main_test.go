//go:build linux && soak

package chaos

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

var (
	chaosTime = flag.Duration("chaos.time", 20*time.Second, "how long TestChaos begins new rounds")
	chaosSeed = flag.Uint64("chaos.seed", 0, "the seed of TestChaos; 0: another one each time")
	chaosKeep = flag.String("chaos.keep", "", "where the files of rounds that fail go; empty: a new directory among the temporary ones")
)

// program is the path of the tested binary.
var program string

func TestMain(m *testing.M) {
	if dir := os.Getenv(agentVariable); dir != "" {
		playAgent(dir)
		return
	}
	flag.Parse()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "duet-chaos-bin")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "duet-rpc")
	// Without the race detector, so that the kills hit the program during its work.
	build := exec.Command("go", "build", "-o", program, "github.com/duet-rpc/duet-rpc/cmd/duet-rpc")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
