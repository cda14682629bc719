package workspace

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

const (
	maxFileKept  = 1 << 20  // longer files count as binary
	maxFilesKept = 64 << 20 // of all files of a prompt together
	maxFiles     = 2000     // of a prompt that are followed
)

// Changes follows the files that a prompt touches: what each was before, and
// what was last reported of it. Its methods may be called from any goroutine. A nil
// *Changes follows nothing.
type Changes struct {
	workspace *Workspace
	report    func(catalog.FileChange)
	log       *slog.Logger
	began     time.Time

	mu    sync.Mutex // guards the fields below, and keeps reports in order
	files map[string]*trackedFile
	order []string
	kept  int
}

type trackedFile struct {
	before, reported content
}

// content is what a file holds. A file that is not text, or too long, is
// known by its print alone.
type content struct {
	exists, binary bool
	text           string
	print          string
}

func (c content) pointer() *string {
	if !c.exists || c.binary {
		return nil
	}
	return &c.text
}

// NewChanges begins to follow files, of which each change is given to report,
// one after the other.
func NewChanges(w *Workspace, log *slog.Logger, report func(catalog.FileChange)) *Changes {
	return &Changes{workspace: w, report: report, log: log, began: time.Now(), files: make(map[string]*trackedFile)}
}

// Mention notes that a tool call of that kind and status touches files.
func (c *Changes) Mention(kind, status string, paths []string, diffs []domain.Diff) {
	if c == nil {
		return
	}
	writes := kind == "edit" || kind == "delete" || kind == "move"
	for _, path := range paths {
		var own []domain.Diff
		for _, d := range diffs {
			if d.Path == path {
				own = append(own, d)
			}
		}
		if writes || len(own) > 0 {
			c.Track(path, status == "completed", own)
		}
	}
}

// Track remembers what the file holds, unless it is known. If the tool is done
// already, or was faster than this, what was there before is derived from what
// it says it did.
func (c *Changes) Track(path string, done bool, diffs []domain.Diff) {
	path = c.workspace.Absolute(path)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files[path] != nil || len(c.files) >= maxFiles {
		return
	}
	now, modified, err := c.read(path)
	if err != nil {
		c.log.Debug("a file is not followed", "err", err)
		return
	}
	before := now
	for i := len(diffs) - 1; i >= 0; i-- { // the last edit is undone first
		before = undo(before, diffs[i], done || modified.After(c.began))
	}
	if c.kept += len(before.text); c.kept > maxFilesKept {
		c.log.Warn("files are not followed any more: the prompt touches too much", "path", path)
		return
	}
	c.files[path] = &trackedFile{before: before, reported: before}
	c.order = append(c.order, path)
}

// undo is the content before the edit, if after has it. done tells that the
// edit has surely been made.
func undo(after content, d domain.Diff, done bool) content {
	switch {
	case after.binary:
		return after
	case d.OldText == nil:
		// Of a new file that is being written there may be the beginning alone.
		if done && after.exists && strings.HasPrefix(d.NewText, after.text) {
			return content{}
		}
		return after
	case after.text == d.NewText && (done || after.text != *d.OldText):
		return content{exists: true, text: *d.OldText}
	case d.NewText != "" && strings.Count(after.text, d.NewText) == 1 && (done || !strings.Contains(after.text, *d.OldText)):
		return content{exists: true, text: strings.Replace(after.text, d.NewText, *d.OldText, 1)}
	}
	return after
}

// Settle reports which of these files, or of all if none is named, are not
// what was last reported of them.
func (c *Changes) Settle(paths ...string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(paths) == 0 {
		paths = c.order
	}
	for _, path := range paths {
		path = c.workspace.Absolute(path)
		f := c.files[path]
		if f == nil {
			continue
		}
		now, _, err := c.read(path)
		if err != nil || now == f.reported {
			continue
		}
		f.reported = now
		change := catalog.FileChange{Path: path, Before: f.before.pointer(), After: now.pointer()}
		if f.before.binary || now.binary {
			change.Before, change.After, change.Binary = nil, nil, true
		}
		c.report(change)
	}
}

// read reads a file inside the workspace; one that does not exist is no
// error.
func (c *Changes) read(path string) (content, time.Time, error) {
	f, info, err := c.workspace.open(path)
	if os.IsNotExist(err) {
		return content{}, time.Time{}, nil
	}
	if err != nil {
		return content{}, time.Time{}, err
	}
	defer f.Close()
	print := fmt.Sprint(info.Size(), info.ModTime().UnixNano())
	if info.Size() > maxFileKept {
		return content{exists: true, binary: true, print: print}, info.ModTime(), nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileKept+1))
	if err != nil {
		return content{}, time.Time{}, err
	}
	if len(data) > maxFileKept || !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return content{exists: true, binary: true, print: print}, info.ModTime(), nil
	}
	return content{exists: true, text: string(data)}, info.ModTime(), nil
}
