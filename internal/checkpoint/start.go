package checkpoint

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/git"
)

// A Start lets others change the files while [Store.TakeBefore] records how they were. Its methods
// may be called from any goroutine.
type Start struct {
	made    time.Time
	allowed chan struct{}
	allow   func() // closes allowed
	at      atomic.Pointer[time.Time]
}

// NewStart returns a Start. What was changed before it was made is recorded.
func NewStart() *Start {
	s := &Start{made: time.Now(), allowed: make(chan struct{})}
	s.allow = sync.OnceFunc(func() { close(s.allowed) })
	return s
}

// Allowed is closed when others may begin: at once if there is a checkpoint before, else when the
// files are recorded.
func (s *Start) Allowed() <-chan struct{} { return s.allowed }

// Begin is called before others begin. It waits until the clock of the files has passed the making
// of s, a few milliseconds, so that the time of a file says on which side of Begin a change was. If
// the clock was set back, Begin does not wait longer than 50 ms.
func (s *Start) Begin() {
	now := fileClock()
	for range 50 {
		if now.After(s.made) {
			break
		}
		time.Sleep(time.Millisecond)
		now = fileClock()
	}
	s.BeginAt(now)
}

// BeginAt says that others began at a time. Only the first call counts, of Begin or BeginAt.
func (s *Start) BeginAt(at time.Time) { s.at.CompareAndSwap(nil, &at) }

// isLate reports whether a file was changed after others began. The directory tells the time of a
// deleted file.
func (s *Start) isLate(path string) bool {
	begun := s.at.Load()
	if begun == nil {
		return false
	}
	at, err := ChangeTime(path)
	for err != nil && filepath.Dir(path) != path {
		path = filepath.Dir(path)
		at, err = ChangeTime(path)
	}
	return err == nil && !at.Before(*begun)
}

// takeBack gives files that were changed after others began the entries of the index from, which is
// that of the checkpoint base. paths are the changed files, each with a NUL.
func (s *Store) takeBack(ctx context.Context, start *Start, index, from string, base Checkpoint, paths []byte) error {
	late := make(map[string]bool)
	for path := range strings.SplitSeq(string(paths), "\x00") {
		if path != "" && start.isLate(filepath.Join(s.top, filepath.FromSlash(path))) {
			late[path] = true
		}
	}
	if len(late) == 0 {
		return nil
	}
	var before []byte
	_, err := s.git(ctx, git.Command{
		Args: []string{"ls-files", "-z", "--stage"}, Env: []string{"GIT_INDEX_FILE=" + from},
		Record: func(record []byte) error {
			_, path, _ := strings.Cut(string(record), "\t")
			if late[path] {
				delete(late, path)
				before = append(append(before, record...), 0)
			}
			return nil
		},
	})
	var entries bytes.Buffer
	for path := range late { // is new
		entries.WriteString("0 " + strings.Repeat("0", len(base.tree)) + "\t" + path + "\x00")
	}
	entries.Write(before)
	if err == nil {
		_, err = s.git(ctx, git.Command{Args: []string{"update-index", "-z", "--index-info"}, Env: []string{"GIT_INDEX_FILE=" + index}, Stdin: &entries})
	}
	return err
}
