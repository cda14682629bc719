package supervisor

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"

	"golang.org/x/sys/unix"
)

// KillAgents ends agents that have lost their executor, and everything that
// they started. They are known by the mark in their environment: by now a
// process id may be somebody else's. All processes of the machine are looked
// at once, however many agents there are.
func KillAgents(left []domain.Process) {
	if len(left) == 0 {
		return
	}
	marks := make(map[string]bool, len(left))
	for _, p := range left {
		marks[p.Mark] = true
	}
	// Until nobody is found: one that is about to start another may have done so behind our
	// back. Those that the system does not let go are left.
	const most, pause = 100, 2 * time.Millisecond
	for range most {
		if !killMarked(marks) {
			return
		}
		time.Sleep(pause)
	}
}

// killMarked kills whoever it finds that has one of the marks, and reports whether there was
// somebody.
func killMarked(marks map[string]bool) (found bool) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		environment, err := os.ReadFile(file)
		if err != nil {
			continue // not ours, or gone
		}
		for variable := range bytes.SplitSeq(environment, []byte{0}) {
			mark, ok := catalog.MarkIn(string(variable))
			if !ok || !marks[mark] {
				continue
			}
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid > 1 {
				found = true
				_ = unix.Kill(pid, unix.SIGKILL)
			}
			break
		}
	}
	return found
}
