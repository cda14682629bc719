package procenv

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
)

// processes returns the IDs of all processes except the first and the kernel threads, in
// ascending order.
func processes() (pids []int) {
	threads := kernelThreads()
	// filepath.Glob("/proc/*/environ") would also read each process's directory, which
	// costs ten times as much.
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && pid > 1 && !threads[pid] {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// kthreadd is the ID of the kernel thread that starts all other kernel threads. In a container
// another process can have this ID.
const kthreadd = 2

var hasKthreadd = sync.OnceValue(func() bool {
	s, ok := readStat("/proc/" + strconv.Itoa(kthreadd))
	return ok && s.kernel
})

// kernelThreads returns the IDs of the kernel threads. An idle machine has more of them than
// other processes, and none has an environment. The set is empty in a container, and if the
// kernel does not list the children of a process (CONFIG_PROC_CHILDREN).
func kernelThreads() map[int]bool {
	if !hasKthreadd() {
		return nil
	}
	id := strconv.Itoa(kthreadd)
	list, _ := os.ReadFile("/proc/" + id + "/task/" + id + "/children")
	threads := map[int]bool{kthreadd: true}
	for field := range bytes.FieldsSeq(list) {
		if pid, err := strconv.Atoi(string(field)); err == nil {
			threads[pid] = true
		}
	}
	return threads
}

// look scans some processes.
func look(pids []int, match func(variable string) bool) (seen sight) {
	buffer := make([]byte, 64<<10)
	for _, pid := range pids {
		dir := "/proc/" + strconv.Itoa(pid)
		var environment []byte
		var err error
		environment, buffer, err = readAtOnce(dir+"/environ", buffer)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			seen.ended = true
			continue
		case errors.Is(err, fs.ErrPermission):
			continue
		case len(environment) == 0:
			if hidesEnvironment(dir) {
				seen.hidden = append(seen.hidden, pid)
			} else {
				seen.ended = true
			}
			continue
		}
		for variable := range bytes.SplitSeq(environment, []byte{0}) {
			if match(string(variable)) {
				seen.found = append(seen.found, pid)
				break
			}
		}
	}
	return seen
}

// readAtOnce reads a file by one call of read(2): the environment ends early if the process
// begins another program between two calls. It returns a larger buffer if it needed one. It
// opens no *os.File, which needs more system calls.
func readAtOnce(path string, buffer []byte) (content, used []byte, err error) {
	for {
		fd, err := retry(func() (int, error) {
			return syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		})
		if err != nil {
			return nil, buffer, err
		}
		n, err := retry(func() (int, error) { return syscall.Read(fd, buffer) })
		syscall.Close(fd)
		if n < len(buffer) {
			return buffer[:max(n, 0)], buffer, err
		}
		buffer = make([]byte, 2*len(buffer))
	}
}

// retry repeats a system call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != syscall.EINTR {
			return n, err
		}
	}
}

// hidesEnvironment reports whether a process whose environment cannot be read has one, or is
// about to have one. Zombies, kernel threads, and processes that were started with an empty
// environment have none.
func hidesEnvironment(dir string) bool {
	s, ok := readStat(dir)
	if !ok || s.kernel {
		return false
	}
	if s.dead { // another thread may be about to take the ID over
		return s.threads != "0" && s.threads != "1"
	}
	return s.envStart == "0" || s.envStart != s.envEnd
}

// A stat has fields of proc_pid_stat(5).
type stat struct {
	dead                      bool // the process is a zombie
	kernel                    bool // the process is a kernel thread
	threads, envStart, envEnd string
}

// readStat reads the stat file of a process's directory.
func readStat(dir string) (s stat, ok bool) {
	content, _, err := readAtOnce(dir+"/stat", make([]byte, 2<<10))
	if err != nil {
		return stat{}, false
	}
	// The fields from the third on follow the name, which is in parentheses.
	fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
	const state, flags, threads, envStart, envEnd, kernelThread = 0, 6, 17, 47, 48, 0x00200000
	if len(fields) <= envEnd {
		return stat{}, false
	}
	set, err := strconv.ParseUint(string(fields[flags]), 10, 64)
	return stat{
		dead: bytes.ContainsAny(fields[state], "ZX"), kernel: err != nil || set&kernelThread != 0,
		threads: string(fields[threads]), envStart: string(fields[envStart]), envEnd: string(fields[envEnd]),
	}, true
}

func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }
