package checkpoint

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/git"
)

// A Start lets others change the files while [Store.TakeBefore] records how they were. Its methods
// may be called from any goroutine.
type Start struct {
	after time.Time
	at    atomic.Pointer[time.Time]
}

// NewStart returns a Start. Changes until the time after are recorded.
func NewStart(after time.Time) *Start { return &Start{after: after} }

// Begin is called before others begin. It waits until the clock of the files has passed the time of
// NewStart, at most a few milliseconds, so that the time of a file says on which side of Begin a change
// was. If the clock was set back, Begin does not wait longer than 50 ms.
func (s *Start) Begin() {
	now := fileClock()
	for range 50 {
		if now.After(s.after) {
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

// isBornLate reports whether a file was created after others began, and false if the system does not know.
func (s *Start) isBornLate(path string) bool {
	begun := s.at.Load()
	at, err := birthTime(path)
	return begun != nil && err == nil && !at.Before(*begun)
}

// isGone reports whether a file does not exist.
func (s *Store) isGone(name string) bool {
	_, err := os.Lstat(s.path(name))
	return isMissing(err)
}

// takeBack gives files that were changed after others began the entries of an earlier index: that of
// the checkpoint base, or the user's if base is the zero one. A file that neither has, and that was
// there before others began, stays as it was read and is skipped as [Changed].
func (p *pick) takeBack(ctx context.Context, start *Start, index, from string, base Checkpoint) error {
	s, late := p.store, make(map[string]bool)
	for path := range strings.SplitSeq(p.drop.String()+p.update.String(), "\x00") {
		if path != "" && start.isLate(s.path(path)) {
			late[path] = true
		}
	}
	isFirst := base.ID == ""
	if start.at.Load() == nil || len(late) == 0 && !isFirst {
		return nil
	}
	if isFirst && !s.own {
		from = filepath.Join(s.repo.Dir, "index")
	}
	var entries bytes.Buffer
	if _, err := os.Stat(from); from != "" && err == nil {
		_, err := s.git(ctx, git.Command{
			Args: []string{"ls-files", "-z", "--stage"}, Env: []string{"GIT_INDEX_FILE=" + from},
			Record: func(record []byte) error {
				mode, path, _ := strings.Cut(string(record), "\t")
				switch {
				case !strings.HasSuffix(mode, " 0") || strings.HasPrefix(mode, "160000"): // a conflict of the user, or a submodule
				case late[path] || isFirst && s.isGone(path) && start.isLate(s.path(path)):
					delete(late, path)
					entries.Write(append(record, 0))
				}
				return nil
			},
		})
		if err != nil {
			return err
		}
	}
	zero := strings.Repeat("0", 2*sha1.Size)
	if s.repo.Config["extensions.objectformat"] == "sha256" {
		zero = strings.Repeat("0", 2*sha256.Size)
	}
	for path := range late {
		if isFirst && !start.isBornLate(s.path(path)) {
			p.skip(path, Changed)
			continue
		}
		entries.WriteString("0 " + zero + "\t" + path + "\x00") // it is new
	}
	_, err := s.git(ctx, git.Command{Args: []string{"update-index", "-z", "--index-info"}, Env: []string{"GIT_INDEX_FILE=" + index}, Stdin: &entries})
	return err
}
