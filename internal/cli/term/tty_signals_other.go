//go:build !unix

package term

import "os"

// Continued tells nothing here: there are no jobs that a shell stops.
func Continued() (again <-chan os.Signal, stop func()) { return nil, func() {} }

// Resized tells nothing here: there is no signal for it.
func Resized() (changes <-chan os.Signal, stop func()) { return nil, func() {} }
