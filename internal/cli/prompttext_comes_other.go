//go:build !unix

package cli

import (
	"os"
	"time"
)

// waitReadable cannot wait on this system and returns true, so that the caller reads the file.
func waitReadable(*os.File, time.Duration) bool { return true }
