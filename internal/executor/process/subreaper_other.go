//go:build !linux

package process

import (
	"errors"
	"os"
)

var errNoSubreaper = errors.New("this system has no subreapers")

// RunSubreaper fails on this system.
func RunSubreaper([]string) error { return errNoSubreaper }

func (p *Process) startBelow([]string) (reports *os.File, err error) { return nil, errNoSubreaper }

func (p *Process) killBelow() {}

func (p *Process) readStart() error { return errNoSubreaper }

func (p *Process) readEnd() (e exit, ok bool) { return exit{}, false }
