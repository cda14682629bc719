//go:build unix

package executor_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// With these variables the test binary plays another program.
const (
	playAgent    = "DUET_TEST_AGENT"    // an agent; see fakeagent_test.go
	playExecutor = "DUET_TEST_EXECUTOR" // an executor process
	playCommand  = "DUET_TEST_COMMAND"  // a plain program
	splitGate    = "DUET_TEST_GATE"     // for the program: a named pipe
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(playAgent) != "":
		fakeAgent()
	case os.Getenv(playExecutor) != "":
		serveInherited()
	case os.Getenv(playCommand) != "":
		fakeCommand()
	default:
		goleak.VerifyTestMain(m)
	}
}
