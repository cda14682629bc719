//go:build !linux

package process

import (
	"errors"
	"os"
	"syscall"
)

// endWithParent changes nothing: on this system a child outlives its parent.
func endWithParent(attr *syscall.SysProcAttr) *syscall.SysProcAttr { return attr }

// reapGroup waits for the end of the process and kills the rest of its group.
func (p *Process) reapGroup() {
	p.cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
	killGroup(p)
}

func killMarked(string) {}

// A Descendant is a process that another one, or a descendant of it, has started.
type Descendant struct {
	PID, Parent int
	Command     string // its command line
}

// Descendants returns nothing on this system.
func Descendants(int) []Descendant { return nil }

// Program returns "" on this system.
func Program(int) string { return "" }

var errNoSubreaper = errors.New("this system has no subreapers")

// RunSubreaper fails on this system.
func RunSubreaper([]string) error { return errNoSubreaper }

func (p *Process) startBelow([]string) (reports *os.File, err error) { return nil, errNoSubreaper }

func (p *Process) killBelow() {}

func (p *Process) readStart() error { return errNoSubreaper }

func (p *Process) readEnd() (e exit, ok bool) { return exit{}, false }
