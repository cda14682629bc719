//go:build !unix

package executor

import "errors"

func (t *terminal) start(int, int) error {
	return errors.New("terminals are not supported on this system")
}

func (t *terminal) resize(int, int) error { return nil }

func (t *terminal) hangUp() { t.proc.kill() }
