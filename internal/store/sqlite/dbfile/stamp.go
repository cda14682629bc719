package dbfile

import (
	"os"
	"time"
)

// A Stamp changes whenever a file is written, for whoever looks a moment later.
type Stamp struct {
	Size int64
	At   time.Time
}

// StampsOf are those of a database and of its write-ahead log; zero of what is not there.
func StampsOf(path string) (stamps [2]Stamp) {
	for i, suffix := range []string{"", "-wal"} {
		if info, err := os.Lstat(path + suffix); err == nil {
			stamps[i] = Stamp{info.Size(), info.ModTime()}
		}
	}
	return stamps
}
