package config

import (
	"errors"
	"path/filepath"
	"strings"
	"time"
)

// What limits may be.
const (
	leastRuns, mostRuns       = 1, 100
	leastIdle, mostIdle       = 0, 1000
	leastQueue, mostQueue     = 1, 100_000
	leastTimeout, mostTimeout = time.Second, 168 * time.Hour
	mostStartTimeout          = time.Hour
	leastSilence, mostSilence = 100 * time.Millisecond, time.Hour
)

func checkSafe(s string) error {
	if s != "*" && !filepath.IsAbs(s) && !strings.HasPrefix(s, "~/") {
		return errors.New(`the path of a directory, absolute or from ~/ on (with /* at its end all below it), or "*"`)
	}
	return nil
}
