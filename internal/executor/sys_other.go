//go:build !unix

package executor

import (
	"errors"
	"os"
	"os/exec"
)

var errNoTerminals = errors.New("terminals are not supported on this system")

func (t *terminal) start(*exec.Cmd, int, int) error { return errNoTerminals }

func (t *terminal) duplicate() (*os.File, error) { return nil, errNoTerminals }

func (t *terminal) unblock() {}

func (t *terminal) resize(int, int) error { return nil }
