package sqlite

import (
	"errors"
	"fmt"

	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Locked is err with the process that has the database, where that is why. This
// process must have closed it.
func Locked(path string, err error) error {
	if !store.IsLocked(err) {
		return err
	}
	var known *OpenError
	if errors.As(err, &known) {
		err = known.Err
	}
	if pid := blocker(path); pid != 0 {
		err = fmt.Errorf("it is process %d, which `kill -9 %d` ends: %w", pid, pid, err)
	}
	return &OpenError{path, "locked", err}
}
