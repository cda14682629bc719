package supervisor

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/internal/store"
)

// KillAgent ends an agent that has lost its executor, and everything that it
// started. They are known by the mark in their environment: by now its
// process id may be somebody else's.
func KillAgent(p store.Process) {
	mark := []byte("DUET_AGENT=" + p.Mark)
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		environment, err := os.ReadFile(file)
		if err != nil {
			continue // not ours, or gone
		}
		for variable := range bytes.SplitSeq(environment, []byte{0}) {
			if bytes.Equal(variable, mark) {
				pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
				if err == nil && pid > 1 {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			}
		}
	}
}
