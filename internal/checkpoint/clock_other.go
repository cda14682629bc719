//go:build !linux

package checkpoint

import (
	"errors"
	"time"
)

func fileClock() time.Time { return time.Now() }

func birthTime(string) (time.Time, error) { return time.Time{}, errors.ErrUnsupported }
