package process

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// maxDescendants bounds how many processes are looked at.
const maxDescendants = 10_000

// A Descendant is a process that another one has started, or a child of it has.
type Descendant struct {
	PID, Parent int
	Command     string // its command line
}

// Descendants are the processes that a process has started, and theirs: parents come before
// their children. Those that have ended are left out. Elsewhere than on Linux nothing is
// known of them.
func Descendants(pid int) (all []Descendant) {
	queue := []int{pid}
	for len(queue) > 0 && len(all) < maxDescendants {
		parent := queue[0]
		queue = queue[1:]
		lists, _ := filepath.Glob("/proc/" + strconv.Itoa(parent) + "/task/*/children")
		for _, list := range lists {
			text, _ := os.ReadFile(list) // it may have ended meanwhile
			for field := range strings.FieldsSeq(string(text)) {
				child, err := strconv.Atoi(field)
				if err != nil {
					continue
				}
				queue = append(queue, child)
				line, _ := os.ReadFile("/proc/" + field + "/cmdline")
				if len(line) == 0 && hasEnded(child) { // else it is just beginning another program
					continue
				}
				all = append(all, Descendant{child, parent, string(bytes.ReplaceAll(bytes.TrimRight(line, "\x00"), []byte{0}, []byte{' '}))})
			}
		}
	}
	return all
}

// hasEnded reports whether a process has ended, and nobody has asked how.
func hasEnded(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	// proc_pid_stat(5): the state follows the name, which is in parentheses.
	state := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(state) == 0 || state[0] == 'Z' || state[0] == 'X'
}

// interpreters run programs that are given to them as their first argument.
var interpreters = []string{"node", "bun", "deno", "python", "python3", "ruby", "sh", "bash", "dash"}

// Program is the file that a process runs, with links resolved: of an interpreter the script.
// It is "" where that is not known, as of a shell with a command line.
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
		if bytes.HasPrefix(argument, []byte("-")) { // also -c, which no file follows
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
