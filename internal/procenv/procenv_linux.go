package procenv

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// processes returns the IDs of all processes but the first, in ascending order.
func processes() (pids []int) {
	// filepath.Glob("/proc/*/environ") would also read each process's directory, which
	// costs ten times as much.
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && pid > 1 {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// look looks at some processes.
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

// readAtOnce reads a file by one call of read(2): the environment ends where the process
// begins another program between two calls. It returns a larger buffer if it needed one.
func readAtOnce(path string, buffer []byte) (content, used []byte, err error) {
	for {
		file, err := os.Open(path)
		if err != nil {
			return nil, buffer, err
		}
		n, err := file.Read(buffer)
		file.Close()
		if n < len(buffer) {
			return buffer[:n], buffer, err
		}
		buffer = make([]byte, 2*len(buffer))
	}
}

// hidesEnvironment reports whether a process whose environment cannot be read has one, or is
// about to have one. Zombies, kernel threads, and processes that were started with an empty
// environment have none.
func hidesEnvironment(dir string) bool {
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return false
	}
	// proc_pid_stat(5): the fields from the third on follow the name, which is in parentheses.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, flags, threads, envStart, envEnd, kernelThread = 0, 6, 17, 47, 48, 0x00200000
	if len(fields) <= envEnd {
		return false
	}
	if bytes.ContainsAny(fields[state], "ZX") { // another thread may be about to take the ID over
		return string(fields[threads]) != "0" && string(fields[threads]) != "1"
	}
	if set, err := strconv.ParseUint(string(fields[flags]), 10, 64); err != nil || set&kernelThread != 0 {
		return false
	}
	return string(fields[envStart]) == "0" || !bytes.Equal(fields[envStart], fields[envEnd])
}

func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }
