package process

import (
	"bytes"
	"os"
	"path/filepath"
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
				if len(line) > 0 { // else it has ended, or is no program
					all = append(all, Descendant{child, parent, string(bytes.ReplaceAll(bytes.TrimRight(line, "\x00"), []byte{0}, []byte{' '}))})
				}
			}
		}
	}
	return all
}
