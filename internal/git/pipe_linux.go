package git

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// pipeOf returns the named pipe that a process, or a git process that it has started, waits to open,
// for want of another end. Other children may have their reasons to wait, as a filter of the user.
// A process of another user is not found.
func pipeOf(pid int) (path string, waits bool) {
	dir := fmt.Sprintf("/proc/%d", pid)
	threads, _ := os.ReadDir(dir + "/task")
	for _, thread := range threads {
		at := dir + "/task/" + thread.Name()
		if wait, _ := os.ReadFile(at + "/wchan"); string(wait) == "wait_for_partner" {
			if path := opened(dir, at); path != "" {
				return path, true
			}
		}
		children, _ := os.ReadFile(at + "/children")
		for child := range strings.FieldsSeq(string(children)) {
			name, _ := os.ReadFile("/proc/" + child + "/comm")
			if n, err := strconv.Atoi(child); err == nil && strings.TrimSpace(string(name)) == "git" {
				if path, waits := pipeOf(n); waits {
					return path, true
				}
			}
		}
	}
	return "", false
}

// openCalls are the numbers of the system calls open, if there is one, and openat (syscall(2)).
var openCalls = map[string][2]string{"amd64": {"2", "257"}, "arm64": {"", "56"}}

// opened returns the named pipe that the system call of a waiting thread names, or "".
func opened(process, thread string) string {
	text, _ := os.ReadFile(thread + "/syscall")
	fields := strings.Fields(string(text))
	calls := openCalls[runtime.GOARCH]
	if len(fields) < 3 {
		return ""
	}
	argument, at := "", process+"/cwd"
	switch fields[0] {
	case calls[0]:
		argument = fields[1]
	case calls[1]:
		argument = fields[2]
		if fd, err := strconv.ParseUint(fields[1], 0, 64); err == nil && int32(fd) >= 0 {
			at = fmt.Sprintf("%s/fd/%d", process, int32(fd))
		}
	default:
		return ""
	}
	address, err := strconv.ParseInt(argument, 0, 64)
	if err != nil {
		return ""
	}
	memory, err := os.Open(process + "/mem")
	if err != nil {
		return ""
	}
	defer memory.Close()
	var name [4096]byte
	n, _ := memory.ReadAt(name[:], address) // less at the end of a mapping
	end := bytes.IndexByte(name[:n], 0)
	if end <= 0 {
		return ""
	}
	path := string(name[:end])
	if !filepath.IsAbs(path) {
		dir, err := os.Readlink(at)
		if err != nil {
			return ""
		}
		path = filepath.Join(dir, path)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		return ""
	}
	return path
}
