package sandbox

import (
	"bytes"
	"os"
	"strconv"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// Inside reports whether a process runs in a sandbox of Duet. It also returns true for a process that
// has ended: a process in a sandbox could connect, pass the connection on and end.
//
// A process in a sandbox is in another PID namespace than this one, which it cannot leave. It descends
// from bwrap, which has the mark of an agent in its environment. A container is no sandbox: its first
// ancestor here has no mark. The ID 0 is a process outside of this container, and not inside.
func Inside(pid int) bool {
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return false
	}
	for inner := false; pid > 0; inner = true {
		dir := "/proc/" + strconv.Itoa(pid)
		stat, err := os.ReadFile(dir + "/stat") // PID (NAME) STATE PARENT ...
		if err != nil {
			return true
		}
		if its, err := os.Readlink(dir + "/ns/pid"); err == nil && its == own {
			environment, _ := os.ReadFile(dir + "/environ")
			return inner && bytes.Contains(append([]byte{0}, environment...), []byte("\x00"+catalog.MarkVariable+"="))
		}
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 {
			return true
		}
		if pid, err = strconv.Atoi(string(fields[1])); err != nil {
			return true
		}
	}
	return false
}
