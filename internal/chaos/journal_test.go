//go:build linux && soak

package chaos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Kinds of notes.
const (
	noteAsk       = "ask"       // before a permission request
	noteAllowed   = "allowed"   // the agent received an approval
	noteDenied    = "denied"    // the agent received a denial
	noteCancelled = "cancelled" // the agent learned that no user decided
	noteDid       = "did"       // the agent did the step: this note is the action
	noteTook      = "took"      // the agent received a queued prompt
)

// A note is a line of the journal.
type note struct {
	At   int64  `json:"at"` // Unix time in nanoseconds
	PID  int    `json:"pid"`
	What string `json:"what"`
	Step string `json:"step"` // work/number, the same for repeated questions; the name of a queued prompt
	Call string `json:"call"` // the tool call, another one for each question; the version of a queued prompt
}

// A journal is a file to which all agents of a project append.
type journal struct {
	mu   sync.Mutex
	path string
}

func journalIn(dir string) *journal { return &journal{path: filepath.Join(dir, "journal")} }

// write appends a note and syncs it to the disk.
func (j *journal) write(n note) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	n.At, n.PID = time.Now().UnixNano(), os.Getpid()
	line, err := json.Marshal(n)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(j.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(append(line, '\n')); err != nil {
		return err
	}
	return f.Sync()
}

// read returns all notes in order.
func (j *journal) read() ([]note, error) {
	content, err := os.ReadFile(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var notes []note
	for line := range bytes.Lines(content) {
		var n note
		if err := json.Unmarshal(line, &n); err != nil {
			return nil, fmt.Errorf("%s: %w: %q", j.path, err, line)
		}
		notes = append(notes, n)
	}
	return notes, err
}
