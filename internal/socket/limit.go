//go:build linux || darwin

package socket

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// RaiseFileLimit raises the number of files that this process may have open (RLIMIT_NOFILE) from
// the soft limit to the hard one, and returns it. Every client takes a file. Go does the same
// when a program starts, so usually nothing remains to do. Children then still get the original
// limit; if this call had to raise the limit, they get the raised one.
func RaiseFileLimit() (uint64, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("reading the limit of open files: %w", err)
	}
	want := limit.Max
	if most, ok := openFilesCap(); ok {
		want = min(want, most)
	}
	if limit.Cur >= want {
		return limit.Cur, nil
	}
	was := limit.Cur
	limit.Cur = want
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return was, fmt.Errorf("raising the limit of open files from %d to %d: %w", was, want, err)
	}
	return want, nil
}
