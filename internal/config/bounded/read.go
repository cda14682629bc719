package bounded

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// readPatience is how long a configuration file may take to be read. What
// stands behind its name may be a file system that does not answer, and nobody
// waits for that: not an editor, and not the end of the process.
const readPatience = time.Second

// Read reads a configuration file. One that does not exist is empty. What
// is no regular file is refused, what is longer than most bytes, and what check gives
// an error for, which sees the file, its directory and what a link leads to.
func Read(path string, most int, check func(path string, info fs.FileInfo) error) ([]byte, error) {
	type result struct {
		content []byte
		err     error
	}
	done := make(chan result, 1)
	// Nothing can end a read that hangs; only the end of the process does.
	go func() {
		content, err := readRegular(path, most, check)
		done <- result{content, err}
	}()
	patience := time.NewTimer(readPatience)
	defer patience.Stop()
	select {
	case r := <-done:
		return r.content, r.err
	case <-patience.C:
		return nil, fmt.Errorf("it could not be read within %v", readPatience)
	}
}

func readRegular(path string, most int, check func(path string, info fs.FileInfo) error) ([]byte, error) {
	for _, name := range []string{path, filepath.Dir(path)} {
		if info, err := os.Lstat(name); err == nil {
			if err := check(name, info); err != nil {
				return nil, err
			}
		}
	}
	info, err := os.Stat(path) // first: to open a device can have effects of its own
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	// It may have become a pipe since, which would wait for whoever writes it.
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	if err := check(path, info); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(content) > most {
		return nil, fmt.Errorf("it is longer than %d bytes", most)
	}
	return content, err
}

var errNotRegular = errors.New("it is no regular file")
