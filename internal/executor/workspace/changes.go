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
	maxFilesKept = 64 << 20 // total of all files of a prompt
	maxFiles     = 2000     // tracked files per prompt
	maxHalf      = 50       // of them, those that seem to be half written

	clockTick = 10 * time.Millisecond // how far the clock of files may be behind
)

// Changes tracks the files that a prompt touches: the content before, and the last reported
// content. Its methods may be called from any goroutine. A nil *Changes tracks nothing.
type Changes struct {
	workspace *Workspace
	report    func(catalog.FileChange)
	log       *slog.Logger
	began     time.Time // by the clock of files, or shortly before

	mu    sync.Mutex // guards the fields below, and keeps reports in order
	files map[string]*trackedFile
	order []string
	kept  int
	half  map[string]halfWritten
}

type trackedFile struct {
	before, reported content
}

// A halfWritten is a file that seemed to be in the middle of a tool's edits when they were mentioned.
type halfWritten struct {
	diffs []domain.Diff
	seen  content
	isNew bool // the file was changed in this prompt
}

// content is the content of a file. Of a file that is binary or too long, it has the size and the
// modification time only.
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

// NewChanges makes a Changes that passes each change to report, one after the other.
func NewChanges(w *Workspace, log *slog.Logger, report func(catalog.FileChange)) *Changes {
	return &Changes{workspace: w, report: report, log: log, began: time.Now().Add(-clockTick), files: make(map[string]*trackedFile), half: make(map[string]halfWritten)}
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

// Line returns the line of a file, from 1, at which a part of it begins, before or after the change
// of that part. It is 0 if the texts are those of the whole file, or not found exactly once.
func (c *Changes) Line(path, before, after string) int {
	if c == nil || before == "" {
		return 0
	}
	now, _, err := c.read(c.workspace.Absolute(path))
	if err != nil || now.text == before || now.text == after {
		return 0
	}
	for _, part := range []string{before, after} {
		if part != "" && strings.Count(now.text, part) == 1 {
			return strings.Count(now.text[:strings.Index(now.text, part)], "\n") + 1
		}
	}
	return 0
}

// Track stores the content of a file, unless it is known. If the tool has already changed the
// file, it derives the earlier content from the tool's diffs.
func (c *Changes) Track(path string, done bool, diffs []domain.Diff) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.track(c.workspace.Absolute(path), done, diffs)
}

func (c *Changes) track(path string, done bool, diffs []domain.Diff) {
	if c.files[path] != nil || len(c.files) >= maxFiles {
		return
	}
	now, modified, err := c.read(path)
	if err != nil {
		c.log.Debug("cannot record the changes of a file", "err", err)
		return
	}
	half := c.half[path]
	if len(diffs) == 0 {
		diffs = half.diffs
	}
	if !done && len(c.half) < maxHalf && isHalfWritten(now, diffs) {
		c.half[path] = halfWritten{diffs, now, modified.After(c.began)}
		return
	}
	delete(c.half, path)
	before := now
	for i := len(diffs) - 1; i >= 0; i-- { // undo the last edit first
		before = undo(before, diffs[i], done || modified.After(c.began))
	}
	if before == now && half.isWhole(now) { // the diffs are not exact
		before = half.seen
	}
	if c.kept += len(before.text); c.kept > maxFilesKept {
		c.log.Warn("file changes are no longer recorded: the prompt changes too much", "path", path)
		return
	}
	c.files[path] = &trackedFile{before: before, reported: before}
	c.order = append(c.order, path)
}

// isWhole reports whether the file seems to have been whole when it was seen, by its content now.
func (h halfWritten) isWhole(now content) bool {
	return h.seen.text != "" && !(h.isNew && strings.HasPrefix(now.text, h.seen.text))
}

// isHalfWritten reports whether a file has neither the text before the last edit nor the text after it. A
// tool empties a file before it writes it, and the file gets its new time a moment after that.
func isHalfWritten(now content, diffs []domain.Diff) bool {
	if now.binary || len(diffs) == 0 || diffs[len(diffs)-1].OldText == nil {
		return false
	}
	has := func(part string) bool { return now.text == part || part != "" && strings.Contains(now.text, part) }
	last := diffs[len(diffs)-1]
	return !has(*last.OldText) && !has(last.NewText)
}

// undo returns the content before the edit, if after contains the edit. done means that the edit
// was certainly made.
func undo(after content, d domain.Diff, done bool) content {
	switch {
	case after.binary:
		return after
	case d.OldText == nil:
		// A new file that is still being written may have the beginning only.
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

// Settle reports the files whose content differs from the last report. It checks the named files,
// or all if none is named.
func (c *Changes) Settle(paths ...string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(paths) == 0 {
		for path := range c.half {
			c.track(path, true, nil)
		}
		paths = c.order
	}
	for _, path := range paths {
		path = c.workspace.Absolute(path)
		if _, is := c.half[path]; is {
			c.track(path, true, nil)
		}
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

// read reads a file inside the workspace. A missing file is not an error.
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
	if err == nil {
		info, err = f.Stat() // after the reading: it may have met a change
	}
	if err != nil {
		return content{}, time.Time{}, err
	}
	if len(data) > maxFileKept || !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return content{exists: true, binary: true, print: print}, info.ModTime(), nil
	}
	return content{exists: true, text: string(data)}, info.ModTime(), nil
}
