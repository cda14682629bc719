package process

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/procenv"
)

// endWithParent lets a child die with the thread that started it, which lives as long as the
// Runner.
func endWithParent(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	attr.Pdeathsig = syscall.SIGKILL
	return attr
}

// reapGroup waits for the end of the process without reaping it, so that its id and its group's
// id stay in use while the group is killed.
func (p *Process) reapGroup() {
	for unix.Waitid(unix.P_PID, p.PID, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	killGroup(p)
	p.cmd.Wait()
	p.reaped = true
}

// killMarked kills the processes that carry the mark, also those that left the process group.
func killMarked(mark string) {
	want := catalog.MarkVariable + "=" + mark
	procenv.Kill(func(variable string) bool { return variable == want })
}

// maxDescendants limits the number of processes.
const maxDescendants = 10_000

// A Descendant is a process that another one, or a descendant of it, has started.
type Descendant struct {
	PID, Parent int
	Command     string // its command line
}

// Descendants lists the running descendants of a process, parents before their children. It
// returns nothing on systems other than Linux.
func Descendants(pid int) (all []Descendant) {
	queue := []int{pid}
	for len(queue) > 0 && len(all) < maxDescendants {
		parent := queue[0]
		queue = queue[1:]
		for _, child := range children(parent) {
			queue = append(queue, child)
			if line := commandLine("/proc/" + strconv.Itoa(child)); len(line) > 0 {
				all = append(all, Descendant{child, parent, string(bytes.ReplaceAll(bytes.TrimRight(line, "\x00"), []byte{0}, []byte{' '}))})
			}
		}
	}
	return all
}

// children returns the children of a process that it has not waited for.
func children(pid int) (pids []int) {
	lists, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, list := range lists {
		text, _ := os.ReadFile(list) // the process may have ended meanwhile
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// interpreters run a script that is their first argument.
var interpreters = []string{"node", "bun", "deno", "python", "python3", "ruby", "sh", "bash", "dash"}

// Program returns the file that a process runs, with links resolved: for an interpreter the
// script. It returns "" if that is unknown, such as for a shell with a command line.
func Program(pid int) string {
	dir := "/proc/" + strconv.Itoa(pid)
	program, err := os.Readlink(dir + "/exe")
	if err != nil {
		return ""
	}
	if !slices.Contains(interpreters, filepath.Base(program)) {
		return program
	}
	line, _ := os.ReadFile(dir + "/cmdline")
	for _, argument := range bytes.Split(line, []byte{0})[1:] {
		if bytes.HasPrefix(argument, []byte("-")) { // also -c, which is not followed by a file
			if string(argument) == "-c" || string(argument) == "-e" {
				return ""
			}
			continue
		}
		script := string(argument)
		if !filepath.IsAbs(script) {
			cwd, _ := os.Readlink(dir + "/cwd")
			script = filepath.Join(cwd, script)
		}
		if resolved, err := filepath.EvalSymlinks(script); err == nil {
			return resolved
		}
		return ""
	}
	return ""
}

// execTime is how long a process may have no command line while it replaces its program.
const execTime = 10 * time.Millisecond

// commandLine returns the command line of a process, or its name if it has none. It is empty for
// a process that has ended.
func commandLine(proc string) []byte {
	for until := time.Now().Add(execTime); ; time.Sleep(time.Millisecond) {
		if line, _ := os.ReadFile(proc + "/cmdline"); len(line) > 0 {
			return line
		}
		stat, _ := os.ReadFile(proc + "/stat") // PID (NAME) STATE ...
		begin, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
		if begin < 0 || end+2 >= len(stat) || stat[end+2] == 'Z' || stat[end+2] == 'X' {
			return nil
		}
		if time.Now().After(until) {
			return stat[begin+1 : end]
		}
	}
}
