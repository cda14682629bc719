package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/checkpoint"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/diff"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/git"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
)

const (
	// checkpointTimeout ends a checkpoint of a tree that is too large for one.
	checkpointTimeout  = 30 * time.Second
	commandChangesWait = 10 * time.Second

	maxCommandChanges = 500      // files of a turn that its commands have changed
	maxChangedFile    = 1 << 20  // bytes; a longer file counts as binary
	maxChangedFiles   = 64 << 20 // bytes of all these files together
	keepCheckpoints   = 7 * 24 * time.Hour
	mostCheckpoints   = 500 // of a directory
	// mostCheckpointBytes is how much of the disk a directory's checkpoints take, apart from the newest.
	mostCheckpointBytes = 2 << 30
	pruneEvery          = 50 // checkpoints
	mostUnrecorded      = 20 // turns
)

// checkpoints records the files of working directories before each turn, so that the changes of an
// agent's commands are known: an agent reports what its editing tools change, and nothing of what a
// shell command does. Its methods may be called from any goroutine.
type checkpoints struct {
	hub    *Hub
	mu     sync.Mutex // guards the maps
	stores map[string]*checkpoint.Store
	failed map[string]time.Time // when directories that are too large were last tried
	broken map[string]error     // why the last checkpoint of a directory failed
	saved  map[string]time.Time // files that users have saved in editors; at most mostSaved
	warned map[string]bool      // directories that a transcript reported as too large
	// taking are the checkpoints that are being taken, and their directories. A channel is closed afterwards.
	taking map[chan struct{}]string
	// unrecorded are, by directory, the ended turns after which no checkpoint was finished, the oldest first;
	// at most mostUnrecorded.
	unrecorded map[string][]domain.Turn
	// restricted are directories whose last turn must not start programs of the project.
	restricted map[string]bool
	noGit      atomic.Bool // git is not installed, and the log says so
	// wait is how long the end of a turn waits for the changes of its commands. Later ones are recorded after it.
	wait time.Duration
}

func newCheckpoints(h *Hub) *checkpoints {
	return &checkpoints{
		hub:        h,
		wait:       commandChangesWait,
		stores:     make(map[string]*checkpoint.Store),
		failed:     make(map[string]time.Time),
		broken:     make(map[string]error),
		saved:      make(map[string]time.Time),
		warned:     make(map[string]bool),
		taking:     make(map[chan struct{}]string),
		unrecorded: make(map[string][]domain.Turn),
		restricted: make(map[string]bool),
	}
}

// A checkpointed turn has the checkpoint before it.
type checkpointed struct {
	dir    string // the working directory
	store  *checkpoint.Store
	before checkpoint.Checkpoint
	start  *checkpoint.Start // of the agent
	// isCommand: the agent is a program that reports no tool calls, so its whole turn is a command.
	isCommand bool
	done      chan struct{} // closed when before and taken, or err, are set
	taken     time.Time     // when before was there
	err       error
}

// begin takes the checkpoint before a turn of an agent in a directory, in a goroutine of the hub. It
// returns nil if checkpoints are off.
func (c *checkpoints) begin(ctx context.Context, turn domain.Turn, agent config.Agent, dir string) *checkpointed {
	opts, on := c.hub.opts.Project.Checkpoints(dir)
	if !on || c.isHopeless(dir) {
		return nil
	}
	c.mu.Lock()
	c.restricted[dir] = turn.Restricted
	ended := slices.Clone(c.unrecorded[dir])
	c.mu.Unlock()
	left := func(ctx context.Context) (map[string]checkpoint.Left, error) { return c.leftBy(ctx, dir, ended) }
	t := &checkpointed{
		dir: dir, isCommand: agent.Driver == config.DriverCommand, start: checkpoint.NewStart(turn.Started, left),
		done: make(chan struct{}),
	}
	if turn.Source == domain.SourceAgent {
		t.start.BeginAt(turn.Created)
	}
	c.inBackground(dir, func() {
		ctx, cancel := context.WithTimeout(ctx, checkpointTimeout)
		defer cancel()
		st, isNew, err := c.open(ctx, dir, opts)
		var before checkpoint.Checkpoint
		if err == nil {
			before, err = st.TakeBefore(ctx, beforeTurn+turn.UUID, t.start)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("it took longer than %v: %w", checkpointTimeout, err)
		}
		t.store, t.before, t.err, t.taken = st, before, err, time.Now()
		close(t.done) // from now on, correct may change t.before
		c.note(dir, err)
		if err == nil {
			c.recorded(dir, ended...)
		}
		c.sayWhatIsMissing(turn, dir, before.Skipped, err)
		if err == nil && (isNew || before.Number%pruneEvery == 0) {
			c.prune(ctx, st)
		}
		if err != nil && ctx.Err() != context.Canceled &&
			!(errors.Is(err, exec.ErrNotFound) && c.noGit.Swap(true)) {
			c.hub.log.Warn("no checkpoint of the files before a turn", "dir", dir, "err", err)
		}
	})
	return t
}

// ends notes that a turn has ended after which no checkpoint was finished.
func (c *checkpoints) ends(dir string, turn domain.Turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ended := append(slices.Clone(c.unrecorded[dir]), turn)
	c.unrecorded[dir] = ended[max(0, len(ended)-mostUnrecorded):]
}

// recorded notes that a checkpoint has what ended turns have left.
func (c *checkpoints) recorded(dir string, turns ...domain.Turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := slices.DeleteFunc(slices.Clone(c.unrecorded[dir]), func(r domain.Turn) bool {
		return slices.ContainsFunc(turns, func(of domain.Turn) bool { return of.ID == r.ID })
	})
	if len(rest) > 0 {
		c.unrecorded[dir] = rest
	} else {
		delete(c.unrecorded, dir)
	}
}

// leftBy returns, by path, how ended turns have left the files that they have changed.
func (c *checkpoints) leftBy(ctx context.Context, dir string, turns []domain.Turn) (map[string]checkpoint.Left, error) {
	left := make(map[string]checkpoint.Left)
	for _, turn := range turns {
		files, err := c.hub.review.Files(ctx, domain.TurnInSession{Turn: turn, Session: domain.Session{CWD: dir}})
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			left[file.Path] = checkpoint.Left{Text: file.Expected(), Unknown: file.Binary}
		}
	}
	return left, nil
}

// inBackground calls take in a goroutine of the hub, and notes until it returns that a checkpoint of a
// directory is being taken; then it closes done. While the hub closes, it does not call take.
func (c *checkpoints) inBackground(dir string, take func()) (done chan struct{}) {
	done = make(chan struct{})
	c.mu.Lock()
	c.taking[done] = dir
	c.mu.Unlock()
	taken := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.taking, done)
		close(done)
	}
	if !c.hub.active.Go(func() { defer taken(); take() }) {
		taken()
	}
	return done
}

// settle waits until the checkpoints of a directory that are being taken are there. A short turn may
// end before they are.
func (c *checkpoints) settle(ctx context.Context, dir string) error {
	c.mu.Lock()
	var taking []chan struct{}
	for done, of := range c.taking {
		if of == dir {
			taking = append(taking, done)
		}
	}
	c.mu.Unlock()
	for _, done := range taking {
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// tryAgain is when a directory is tried again that was too large for a checkpoint.
const tryAgain = 15 * time.Minute

// isHopeless reports whether the next checkpoint of a directory would fail as the last one: it is too
// large, or a named pipe is in the way.
func (c *checkpoints) isHopeless(dir string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pipe, is := errors.AsType[*git.PipeError](c.broken[dir]); is {
		info, err := os.Stat(pipe.Path)
		return err == nil && info.Mode().Type() == fs.ModeNamedPipe
	}
	return time.Since(c.failed[dir]) < tryAgain
}

// note remembers whether a directory is too large, and why its last checkpoint failed.
func (c *checkpoints) note(dir string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		delete(c.broken, dir)
	case !errors.Is(err, context.Canceled) && !errors.Is(err, exec.ErrNotFound):
		c.broken[dir] = err
	}
	_, many := errors.AsType[*checkpoint.TooManyFilesError](err)
	_, large := errors.AsType[*checkpoint.TooLargeError](err)
	if many || large || errors.Is(err, context.DeadlineExceeded) {
		c.failed[dir] = time.Now()
	}
}

// issues says for which directories no checkpoints are taken.
func (c *checkpoints) issues() (issues []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, dir := range slices.Sorted(maps.Keys(c.broken)) {
		if _, err := os.Stat(dir); err == nil {
			issues = append(issues, fmt.Sprintf("%s in %s: %v", notRecorded, dir, c.broken[dir]))
		}
	}
	return issues
}

// notRecorded says what a failed checkpoint means.
const notRecorded = "files are not recorded before turns, so they cannot be rewound, and what commands change is not known"

// mostSaved is how many saved files are remembered.
const mostSaved = 1000

// Saved notes that the user has saved files. They are not changes of a command that runs meanwhile.
func (h *Hub) Saved(paths []string) {
	c, now := h.checkpoints, time.Now()
	for _, path := range paths {
		path, err := filepath.EvalSymlinks(path)
		if err != nil || !filepath.IsAbs(path) || !isBelow(h.rootOf(path), path) {
			continue
		}
		c.mu.Lock()
		if len(c.saved) >= mostSaved {
			clear(c.saved)
		}
		c.saved[path] = now
		c.mu.Unlock()
	}
}

// isSaved reports whether the last change of a file is that of the user. A time that is to come is from
// before the clock was set back, and says nothing.
func (c *checkpoints) isSaved(path string) bool {
	c.mu.Lock()
	at, is := c.saved[path]
	c.mu.Unlock()
	changed, err := checkpoint.ChangeTime(path)
	return is && err == nil && !changed.After(at) && !at.Round(0).After(time.Now()) // Round removes the monotonic part
}

func isBelow(root, path string) bool {
	below, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(below)
}

// sayWhatIsMissing says in a transcript, once for each directory, that files are not recorded.
func (c *checkpoints) sayWhatIsMissing(turn domain.Turn, dir string, skipped []checkpoint.Skipped, err error) {
	text := ""
	switch {
	case err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, exec.ErrNotFound):
		text = fmt.Sprintf("F%s: %v.", notRecorded[1:], err)
	case slices.ContainsFunc(skipped, func(s checkpoint.Skipped) bool {
		return s.Reason == checkpoint.Untracked
	}):
		text = "Only the files that git tracks are recorded before turns, because there are too many others: add data and build output to " +
			".gitignore."
	default:
		return
	}
	c.mu.Lock()
	warned := c.warned[dir]
	c.warned[dir] = true
	c.mu.Unlock()
	if warned {
		return
	}
	if err := c.hub.write(c.hub.ctx, func(tx store.Tx) error {
		return c.hub.transcript.Note(tx, turn, transcript.NoteCheckpoint, text)
	}); err != nil && c.hub.ctx.Err() == nil {
		c.hub.log.Warn("a note about checkpoints was not stored", "err", err)
	}
}

func (c *checkpoints) open(
	ctx context.Context, dir string, opts checkpoint.Options,
) (opened *checkpoint.Store, isNew bool, err error) {
	c.mu.Lock()
	known := c.stores[dir]
	c.mu.Unlock()
	if known != nil && !known.IsGone() {
		return known, false, nil
	}
	if isTrusted := opts.Trusted; isTrusted != nil {
		opts.Trusted = func() bool {
			c.mu.Lock()
			restricted := c.restricted[dir]
			c.mu.Unlock()
			return !restricted && isTrusted()
		}
	}
	if opened, err = checkpoint.Open(ctx, opts); err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stores[dir] = opened
	return opened, true, nil
}

// list returns the checkpoints of a directory, the oldest first, after those that are being taken. The
// store is nil if checkpoints are off.
func (c *checkpoints) list(ctx context.Context, dir string) (*checkpoint.Store, []checkpoint.Checkpoint, error) {
	opts, on := c.hub.opts.Project.Checkpoints(dir)
	if !on {
		return nil, nil, nil
	}
	if err := c.settle(ctx, dir); err != nil {
		return nil, nil, err
	}
	opened, _, err := c.open(ctx, dir, opts)
	if err != nil {
		return nil, nil, err
	}
	list, err := opened.List(ctx)
	return opened, list, err
}

// newestOf returns the newest checkpoint whose message has the first line.
func newestOf(list []checkpoint.Checkpoint, line string) (checkpoint.Checkpoint, bool) {
	for _, c := range slices.Backward(list) {
		if first, _, _ := strings.Cut(c.Message, "\n"); first == line {
			return c, true
		}
	}
	return checkpoint.Checkpoint{}, false
}

// NotRecorded reports whether there is no checkpoint of the files before a session, or no longer, so
// that what its commands have changed may not be known. The error is that of ctx.
func (h *Hub) NotRecorded(ctx context.Context, s domain.TurnInSession) (bool, error) {
	_, list, err := h.checkpoints.list(ctx, s.Session.CWD)
	if err != nil && ctx.Err() == nil {
		h.log.Warn("the checkpoints of a directory cannot be read", "dir", s.Session.CWD, "err", err)
		return true, nil
	}
	_, found := newestOf(list, beforeTurn+s.Turn.UUID)
	return !found, err
}

// agentBegins notes that the agent gets its prompt now. It does not wait for the checkpoint: the times of
// the files tell the agent's changes from earlier ones, see [checkpoint.Store.TakeBefore].
func (t *checkpointed) agentBegins() {
	if t != nil {
		t.start.Begin()
	}
}

// The messages of checkpoints, before the UUID of a turn. That of a rewind goes on with the paths, and
// that of its undoing with the number of the rewind's checkpoint.
const (
	beforeTurn   = "before "
	afterTurn    = "after "
	beforeRewind = "rewind "
	undoneRewind = "undone "
)

// after takes the checkpoint after a turn that ran commands and has reported changes.
func (c *checkpoints) after(
	ctx context.Context, turn domain.Turn, t *checkpointed, commands spans, reported []domain.Change,
) (after checkpoint.Checkpoint, err error) {
	select {
	case <-t.done:
	case <-ctx.Done():
		return after, ctx.Err()
	}
	if t.err != nil {
		return after, nil
	}
	if err := t.correct(ctx, commands, reported); err != nil {
		return after, err
	}
	if after, err = t.store.Take(ctx, afterTurn+turn.UUID); err == nil {
		c.recorded(t.dir, turn)
	}
	return after, err
}

// correct gives the checkpoint before a turn the texts that the agent found in those files that it had
// changed when the checkpoint was taken: the user may have saved them just before. What a command found is
// not known.
func (t *checkpointed) correct(ctx context.Context, commands spans, reported []domain.Change) error {
	if slices.ContainsFunc(commands, func(s span) bool { return s.from.Before(t.taken) }) {
		return nil
	}
	texts := make(map[string]*string)
	for _, change := range reported {
		name, err := filepath.Rel(t.store.Top(), change.Path)
		if err == nil && !change.Binary && slices.Contains(t.before.Late, filepath.ToSlash(name)) {
			texts[filepath.ToSlash(name)] = change.Before
		}
	}
	if len(texts) == 0 {
		return nil
	}
	corrected, err := t.store.Correct(ctx, t.before, texts)
	if err == nil {
		t.before = corrected
	}
	return err
}

// recordCommands stores and announces the files that the commands of a turn have changed, apart from
// those that the agent has reported itself. On a slow machine it goes on in the background.
func (c *checkpoints) recordCommands(turn domain.Turn, t *checkpointed) {
	c.ends(t.dir, turn)
	recorded := c.inBackground(t.dir, func() { c.storeCommands(turn, t) })
	late := time.NewTimer(c.wait)
	defer late.Stop()
	select {
	case <-recorded:
	case <-late.C:
	}
}

func (c *checkpoints) storeCommands(turn domain.Turn, t *checkpointed) {
	h := c.hub
	ctx, cancel := context.WithTimeout(h.ctx, 2*checkpointTimeout) // for the one before the turn, and the one after it
	defer cancel()
	changes, err := c.commandChanges(ctx, turn, t)
	if err == nil && len(changes) > 0 {
		err = h.write(ctx, func(tx store.Tx) error {
			for _, change := range changes {
				if err := h.transcript.File(tx, turn, change); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil && h.ctx.Err() == nil {
		h.log.Warn("the changes of a turn's commands are not known", "turn", turn.UUID, "err", err)
	}
}

// commandChanges compares the files before a turn with those after it, if it has run a command.
func (c *checkpoints) commandChanges(
	ctx context.Context, turn domain.Turn, t *checkpointed,
) ([]transcript.FileChange, error) {
	h := c.hub
	var items []domain.Item
	var reported []domain.Change
	err := h.write(ctx, func(tx store.Tx) (err error) { // a write follows those of the turn's last reports
		if items, err = tx.ItemsOfTurn(ctx, turn.ID); err == nil {
			reported, err = tx.Changes(ctx, turn.ID)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	commands := commandTimes(items)
	if t.isCommand {
		commands = spans{{from: turn.Started, to: time.Now()}}
	}
	if len(commands) == 0 {
		c.inBackground(t.dir, func() { // the turn's end does not wait for it
			ctx, cancel := context.WithTimeout(h.ctx, checkpointTimeout)
			defer cancel()
			if _, err := c.after(ctx, turn, t, commands, reported); err != nil && h.ctx.Err() == nil {
				h.log.Warn("no checkpoint of the files after a turn", "turn", turn.UUID, "err", err)
			}
		})
		return nil, nil
	}
	after, err := c.after(ctx, turn, t, commands, reported)
	if t.err != nil {
		return nil, nil // its warning is logged already
	}
	if err != nil {
		return nil, err
	}
	changed, err := t.store.Changes(ctx, t.before.ID, after.ID)
	if err != nil {
		return nil, err
	}
	known := make(map[string]domain.Change, len(reported))
	for _, change := range reported {
		known[change.Path] = change
	}
	root := h.rootOf(t.dir)
	var list []transcript.FileChange
	kept := 0
	add := func(f checkpoint.Change, oldBlob, newBlob string) error {
		full := filepath.Join(t.store.Top(), filepath.FromSlash(f.Path))
		rel, err := filepath.Rel(root, full)
		if err != nil || !filepath.IsLocal(rel) || !commands.include(full) || c.isSaved(full) ||
			len(list) == maxCommandChanges {
			return nil
		}
		var change transcript.FileChange
		if f.ChangesMode() {
			change.OldMode, change.NewMode = f.OldMode, f.NewMode
		}
		known, isKnown := known[full]
		size := max(f.OldSize, f.NewSize)
		switch {
		case isKnown && change.NewMode == 0:
			return nil
		case isKnown:
			change.Before, change.After, change.Binary = known.Before, known.After, known.Binary
		default:
			change.Binary = f.Binary || size > maxChangedFile || kept > maxChangedFiles
			kept += int(size)
		}
		change.Path = full
		if !isKnown && !change.Binary {
			if change.Before, err = c.text(ctx, t.store, oldBlob); err != nil {
				return err
			}
			if change.After, err = c.text(ctx, t.store, newBlob); err != nil {
				return err
			}
			if change.Before == nil && oldBlob != "" || change.After == nil && newBlob != "" {
				change.Before, change.After, change.Binary = nil, nil, true
			}
		}
		if !change.Binary {
			change.Diff = diff.Unified(root, full, change.Before, change.After)
			change.Added, change.Removed = diff.Count(change.Diff)
		}
		change.Diff = diff.Mode(root, full, change.OldMode, change.NewMode) + change.Diff
		list = append(list, change)
		return nil
	}
	for _, f := range changed {
		if f.Kind == checkpoint.Renamed { // a change has one path
			old := f
			old.Path, old.NewMode, f.OldMode = f.OldPath, 0, 0
			if err = add(old, f.OldBlob, ""); err == nil {
				err = add(f, "", f.NewBlob)
			}
		} else {
			err = add(f, f.OldBlob, f.NewBlob)
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// text returns the text of a blob, or nil if there is none or it is not text.
func (c *checkpoints) text(ctx context.Context, from *checkpoint.Store, blob string) (*string, error) {
	if blob == "" {
		return nil, nil
	}
	data, err := from.Read(ctx, blob)
	if err != nil || !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil, err
	}
	text := string(data)
	return &text, nil
}

// prune deletes old checkpoints of a directory.
func (c *checkpoints) prune(ctx context.Context, of *checkpoint.Store) {
	list, err := of.List(ctx)
	if err != nil {
		return
	}
	last := 0
	if len(list) > 0 {
		last = list[len(list)-1].Number
	}
	oldest := time.Now().Add(-keepCheckpoints)
	_, err = of.Prune(ctx, func(c checkpoint.Checkpoint) bool {
		return c.Number == last || c.Time.After(oldest) && c.Number > last-mostCheckpoints
	})
	if err == nil {
		_, err = of.PruneTo(ctx, mostCheckpointBytes)
	}
	if err != nil && ctx.Err() == nil {
		c.hub.log.Warn("old checkpoints were not deleted", "err", err)
	}
}

// forget deletes the checkpoints of a directory that is about to be deleted: without the directory,
// git cannot find their refs.
func (c *checkpoints) forget(ctx context.Context, dir string) {
	opts, _ := c.hub.opts.Project.Checkpoints(dir)
	if _, err := os.Stat(opts.State); err != nil {
		return
	}
	of, _, err := c.open(ctx, dir, opts)
	if err == nil {
		_, err = of.Prune(ctx, func(checkpoint.Checkpoint) bool { return false })
	}
	if err == nil {
		err = os.RemoveAll(opts.State)
	}
	c.mu.Lock()
	delete(c.stores, dir)
	c.mu.Unlock()
	if err != nil {
		c.hub.log.Warn("the checkpoints of a deleted worktree stay", "dir", dir, "err", err)
	}
}

// spans are the times during which the commands of a turn ran.
type spans []span

// A span is when a command ran.
type span struct {
	from, to time.Time
	paths    []string // the only files that it may have changed; none: any
}

// commandTimes returns when the tool calls ran that may change files without a report. A tool that
// edits files and has not said how counts for the files that it names.
func commandTimes(items []domain.Item) (all spans) {
	for _, item := range items {
		if item.Kind != domain.ItemTool {
			continue
		}
		var paths []string
		switch item.ToolKind {
		case "read", "search", "think", "fetch":
			continue
		case "edit", "delete", "move":
			details, _ := item.Data.(domain.ToolDetails)
			if paths = details.Paths; len(details.Diffs) > 0 {
				continue
			}
		}
		to := item.Updated
		if item.Status == "pending" || item.Status == "in_progress" {
			to = time.Now() // it was interrupted, or runs on in the background
		}
		all = append(all, span{item.Created, to, paths})
	}
	return all
}

// spanMargin is for the time between a command's start and end and their reports.
const spanMargin = time.Second

// include reports whether a file was changed during a command. A change at another time is one of
// the user or of another program. The directory tells the time of a deleted file. If the clock was set
// back during a command, a change at any time may be the command's.
func (s spans) include(path string) bool {
	at, err := checkpoint.ChangeTime(path)
	for parent := path; err != nil && filepath.Dir(parent) != parent; {
		parent = filepath.Dir(parent)
		at, err = checkpoint.ChangeTime(parent)
	}
	if err != nil {
		return false
	}
	for _, span := range s {
		if len(span.paths) > 0 && !slices.Contains(span.paths, path) {
			continue
		}
		if span.to.Before(span.from.Add(-spanMargin)) ||
			!at.Before(span.from.Add(-spanMargin)) && !at.After(span.to.Add(spanMargin)) {
			return true
		}
	}
	return false
}
