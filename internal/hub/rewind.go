package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/changereview"
	"github.com/duet-rpc/duet-rpc/internal/checkpoint"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
)

// RewindSpec says how far the files of a session go back.
type RewindSpec struct {
	Turn    string // any id: the files become as they were before this turn
	All     bool   // also files that others have changed since
	Preview bool   // change nothing
}

// Rewound is the result of [Hub.Rewind] and [Hub.UndoRewind].
type Rewound struct {
	Turn       domain.TurnInSession // the named turn
	Checkpoint bool                 // false: no checkpoint before the turn is kept, so no file was changed
	Files      []RewoundFile        // by path
	// NotRecorded are files that the checkpoint does not have, with absolute paths, and that stay as they
	// are. Those that git does not track have no path if there are too many. There are more if
	// MoreNotRecorded is not 0.
	NotRecorded     []checkpoint.Skipped
	MoreNotRecorded int
}

// Why [Hub.Rewind] leaves a file as it is.
const (
	LeftEdited = "edited" // it was changed after the session's last change of it
	LeftOther  = "other"  // the session has not changed it
	LeftBusy   = "busy"   // it is being changed, or cannot be written
)

// A RewoundFile is a file that differs from the checkpoint.
type RewoundFile struct {
	Path                     string // absolute
	Kind                     checkpoint.Kind
	AddedLines, DeletedLines int    // by rewinding
	Left                     string // why it stays as it is; "": it becomes as it was
	Detail                   string // of LeftBusy
}

// Rewind restores the files of a session to their state before a turn. Without spec.All it
// restores the files that this turn and later ones of the session have changed and that are as
// they left them. What the other files lose is in the result; spec.Preview only returns that.
// UndoRewind undoes it. The session itself stays; a fork from the turn before continues it from
// there.
//
// The error is a *domain.Error: KindBadState while the session works, or with spec.All another
// one in the same directory.
func (h *Hub) Rewind(ctx context.Context, spec RewindSpec) (Rewound, error) {
	w, err := h.beginRewind(ctx, spec.Turn)
	if err != nil || w.store == nil {
		return w.Rewound, err
	}
	before, found := w.newest(beforeTurn)
	if !found {
		return w.Rewound, nil
	}
	w.Checkpoint, w.MoreNotRecorded = true, before.MoreSkipped
	for _, s := range before.Skipped {
		if s.Path != "" {
			s.Path = filepath.Join(w.store.Top(), filepath.FromSlash(s.Path))
		}
		w.NotRecorded = append(w.NotRecorded, s)
	}
	if spec.All && !spec.Preview { // else the files of other sessions stay
		others, err := h.Beside(ctx, w.Turn)
		if err != nil {
			return w.Rewound, err
		}
		if len(others) > 0 {
			return w.Rewound, domain.Errorf(domain.KindBadState,
				"%s works in this directory: all files can be restored when it has ended",
				others[0].Label())
		}
	}
	now, err := w.store.Take(ctx, "now")
	if err != nil {
		return w.Rewound, rewindError(err)
	}
	if err := w.compare(ctx, now.ID, before, spec.All); err != nil || spec.Preview {
		return w.Rewound, rewindError(err)
	}
	paths := w.paths()
	if len(paths) == 0 {
		return w.Rewound, nil
	}
	// UndoRewind needs it, also after a kill in the midst of the restore.
	now, err = w.store.Take(ctx, beforeRewind+w.Turn.UUID+"\n"+rewoundText(paths))
	if err == nil {
		err = w.restore(ctx, now.ID, before.ID, changereview.Revert)
	}
	if err != nil {
		return w.Rewound, rewindError(err)
	}
	return w.Rewound, w.note(ctx, fmt.Sprintf("Rewound: %s as before %s.",
		filesAre(w.restored()), w.Turn.Name()))
}

// UndoRewind restores the files that the last Rewind to before a turn has changed, except those that
// were changed since. The next call undoes the Rewind before it, unless this one has restored only
// a part: then it tries the rest again.
func (h *Hub) UndoRewind(ctx context.Context, id string) (Rewound, error) {
	w, err := h.beginRewind(ctx, id)
	if err != nil {
		return w.Rewound, err
	}
	from, isKept := w.newest(beforeTurn)
	to, wasRewound := w.lastRewind()
	_, text, _ := strings.Cut(to.Message, "\n")
	paths, err := rewoundPaths(text)
	if !isKept || !wasRewound || err != nil {
		return w.Rewound, domain.Errorf(domain.KindBadState,
			"the files were not rewound to before %s, or this can no longer be undone", w.Turn.Label())
	}
	w.Checkpoint = true
	changes, err := w.store.Changes(ctx, from.ID, to.ID)
	if err != nil {
		return w.Rewound, rewindError(err)
	}
	for _, c := range unrenamed(changes) {
		if slices.Contains(paths, c.Path) {
			w.add(c, "")
		}
	}
	err = w.restore(ctx, from.ID, to.ID, changereview.Reopen)
	if n := w.restored(); err == nil && (n == 0 || n == len(w.Files)) {
		_, err = w.store.Take(ctx, undoneRewind+w.Turn.UUID+"\n"+strconv.Itoa(to.Number))
	}
	if err != nil {
		return w.Rewound, rewindError(err)
	}
	return w.Rewound, w.note(ctx, fmt.Sprintf("The rewinding to before %s was undone: %s as before it.",
		w.Turn.Name(), filesAre(w.restored())))
}

// rewoundText returns the paths as a JSON array, and those that are not UTF-8, which JSON cannot have,
// in base64 as another one in a second line.
func rewoundText(paths []string) string {
	var texts []string
	var others [][]byte
	for _, path := range paths {
		if utf8.ValidString(path) {
			texts = append(texts, path)
		} else {
			others = append(others, []byte(path))
		}
	}
	text, _ := json.Marshal(texts) // strings: encoding cannot fail
	if len(others) > 0 {
		more, _ := json.Marshal(others)
		text = append(append(text, '\n'), more...)
	}
	return string(text)
}

func rewoundPaths(text string) (paths []string, err error) {
	first, second, hasOthers := strings.Cut(text, "\n")
	if err := json.Unmarshal([]byte(first), &paths); err != nil || !hasOthers {
		return paths, err
	}
	var others [][]byte
	err = json.Unmarshal([]byte(second), &others)
	for _, path := range others {
		paths = append(paths, string(path))
	}
	return paths, err
}

func filesAre(n int) string {
	if n == 1 {
		return "1 file is"
	}
	return fmt.Sprintf("%d files are", n)
}

// rewindError explains an error of the checkpoints.
func rewindError(err error) error {
	var kind *domain.Error
	if err == nil || errors.As(err, &kind) {
		return err
	}
	return &domain.Error{Kind: domain.KindNotWritable, Message: "rewinding the files: " + err.Error(), Err: err}
}

// rewinding is a rewind under way.
type rewinding struct {
	Rewound
	hub         *Hub
	store       *checkpoint.Store // nil: there are no checkpoints
	checkpoints []checkpoint.Checkpoint
	turns       []domain.Turn // of the session, from the named one on
	files       map[string][]changed
}

// changed is a change of a file by a turn of the session.
type changed struct {
	turn domain.Turn
	file changereview.File
}

func (h *Hub) beginRewind(ctx context.Context, id string) (*rewinding, error) {
	w := &rewinding{hub: h, files: make(map[string][]changed)}
	turn, err := query.Find(ctx, h.store, id)
	if err == nil {
		w.Turn, err = h.query.ByTurn(ctx, turn.ID)
	}
	if err != nil {
		return w, stored(err)
	}
	unfinished, err := h.store.UnfinishedTurns(ctx, turn.Session)
	if err != nil {
		return w, stored(err)
	}
	for _, other := range unfinished {
		if other.State != domain.Draft {
			return w, domain.Errorf(domain.KindBadState, "%s is %s: its files can be rewound when it has ended",
				other.Label(), other.State.Words())
		}
	}
	turns, err := h.store.TurnsOfSession(ctx, turn.Session, 0)
	if err != nil {
		return w, stored(err)
	}
	w.turns = turns[max(0, slices.IndexFunc(turns, func(r domain.Turn) bool { return r.ID == turn.ID })):]
	for _, turn := range w.turns {
		files, err := h.review.Files(ctx, domain.TurnInSession{Turn: turn, Session: w.Turn.Session})
		if err != nil {
			return w, err
		}
		for _, file := range files {
			w.files[file.Path] = append(w.files[file.Path], changed{turn, file})
		}
	}
	w.store, w.checkpoints, err = h.checkpoints.list(ctx, w.Turn.Session.CWD)
	return w, rewindError(err)
}

// newest returns the newest checkpoint of a kind for the turn.
func (w *rewinding) newest(message string) (checkpoint.Checkpoint, bool) {
	return newestOf(w.checkpoints, message+w.Turn.UUID)
}

// lastRewind returns the checkpoint of the newest rewind to before the turn that is not undone.
func (w *rewinding) lastRewind() (checkpoint.Checkpoint, bool) {
	undone := make(map[string]bool)
	for _, c := range slices.Backward(w.checkpoints) {
		kind, about, _ := strings.Cut(c.Message, "\n")
		switch {
		case kind == undoneRewind+w.Turn.UUID:
			undone[strings.TrimSpace(about)] = true
		case kind == beforeRewind+w.Turn.UUID && !undone[strconv.Itoa(c.Number)]:
			return c, true
		}
	}
	return checkpoint.Checkpoint{}, false
}

// compare lists the files that differ between two checkpoints, and says which of them stay.
func (w *rewinding) compare(ctx context.Context, now checkpoint.ID, before checkpoint.Checkpoint, all bool) error {
	changes, err := w.store.Changes(ctx, now, before.ID)
	if err != nil {
		return err
	}
	since := make(map[string]map[string]bool) // paths that have changed after a turn, by its UUID
	for _, c := range unrenamed(changes) {
		if c.Kind == checkpoint.Deleted && isNotRecorded(before, c.Path) {
			continue // it may have been there
		}
		left := ""
		if !all {
			if left, err = w.left(ctx, c, now, since); err != nil {
				return err
			}
		}
		w.add(c, left)
	}
	return nil
}

// isNotRecorded reports whether a file that a checkpoint does not have may have been there when it was
// taken.
func isNotRecorded(c checkpoint.Checkpoint, path string) bool {
	return c.MoreSkipped > 0 || slices.ContainsFunc(c.Skipped, func(s checkpoint.Skipped) bool {
		return s.Reason == checkpoint.Untracked || s.Path == path || strings.HasPrefix(path, s.Path+"/")
	})
}

// unrenamed splits renamed files into a deleted and an added one.
func unrenamed(changes []checkpoint.Change) (list []checkpoint.Change) {
	for _, c := range changes {
		if c.Kind == checkpoint.Renamed {
			list = append(list, checkpoint.Change{
				Kind: checkpoint.Deleted, Path: c.OldPath, OldPath: c.OldPath, OldBlob: c.OldBlob,
			})
			c.Kind, c.OldPath, c.OldBlob = checkpoint.Added, "", ""
		}
		list = append(list, c)
	}
	return list
}

// add adds a file of the project to the result.
func (w *rewinding) add(c checkpoint.Change, left string) {
	path := w.path(c.Path)
	if rel, err := filepath.Rel(w.hub.rootOf(w.Turn.Session.CWD), path); err == nil && filepath.IsLocal(rel) {
		w.Files = append(w.Files, RewoundFile{
			Path: path, Kind: c.Kind, AddedLines: c.AddedLines, DeletedLines: c.DeletedLines, Left: left,
		})
	}
}

// path returns the absolute path of a file of a checkpoint.
func (w *rewinding) path(name string) string {
	return filepath.Join(w.store.Top(), filepath.FromSlash(name))
}

// left says why rewinding leaves a file as it is, or "". c is the change that rewinding makes.
func (w *rewinding) left(
	ctx context.Context, c checkpoint.Change, now checkpoint.ID, since map[string]map[string]bool,
) (string, error) {
	of := w.files[w.path(c.Path)]
	if len(of) == 0 {
		return LeftOther, nil
	}
	last := of[len(of)-1]
	if !last.file.Binary { // a review may have changed it after the turn
		var text *string
		if c.OldBlob != "" {
			data, err := w.store.Read(ctx, c.OldBlob)
			if err != nil {
				return "", err
			}
			read := string(data)
			text = &read
		}
		if is := last.file.Expected(); is == nil && text == nil || is != nil && text != nil && *is == *text {
			return "", nil
		}
		return LeftEdited, nil
	}
	paths, known := since[last.turn.UUID]
	if !known {
		paths = make(map[string]bool)
		since[last.turn.UUID] = paths
		i := slices.IndexFunc(w.checkpoints, func(c checkpoint.Checkpoint) bool {
			return c.Message == afterTurn+last.turn.UUID
		})
		if i < 0 {
			return LeftEdited, nil
		}
		changes, err := w.store.Changes(ctx, w.checkpoints[i].ID, now)
		if err != nil {
			return "", err
		}
		for _, c := range unrenamed(changes) {
			paths[c.Path] = true
		}
		paths[""] = true // it is known
	}
	if !paths[""] || paths[c.Path] {
		return LeftEdited, nil
	}
	return "", nil
}

// restore changes the files that do not stay, and stores what that means for the changes of turns.
func (w *rewinding) restore(ctx context.Context, from, to checkpoint.ID, decision string) error {
	paths := w.paths()
	if len(paths) == 0 {
		return nil
	}
	done, err := w.store.Restore(ctx, from, to, checkpoint.RestoreOptions{Paths: paths, Partial: true})
	conflicts := make(map[string]string)
	for _, c := range done.Conflicts {
		conflicts[w.path(c.Path)] = c.Reason
	}
	restored := make(map[string]bool) // the others were so already
	for _, path := range slices.Concat(done.Written, done.Removed) {
		restored[w.path(path)] = true
	}
	for i := range w.Files {
		file := &w.Files[i]
		if why, conflict := conflicts[file.Path]; conflict {
			file.Left, file.Detail = LeftBusy, why
			if decision == changereview.Reopen {
				file.Left = LeftEdited
			}
		}
		if !restored[file.Path] {
			continue
		}
		for _, c := range w.files[file.Path] {
			err = errors.Join(err, w.hub.review.Restored(ctx,
				domain.TurnInSession{Turn: c.turn, Session: w.Turn.Session}, c.file, decision))
		}
	}
	if err == nil {
		w.Files = slices.DeleteFunc(w.Files, func(f RewoundFile) bool { return f.Left == "" && !restored[f.Path] })
	}
	return err
}

// paths returns the names in checkpoints of the files that do not stay.
func (w *rewinding) paths() (paths []string) {
	for _, file := range w.Files {
		if rel, err := filepath.Rel(w.store.Top(), file.Path); err == nil && file.Left == "" {
			paths = append(paths, filepath.ToSlash(rel))
		}
	}
	return paths
}

// restored returns how many files were changed.
func (w *rewinding) restored() (n int) {
	for _, file := range w.Files {
		if file.Left == "" {
			n++
		}
	}
	return n
}

// note says in the transcript what was done.
func (w *rewinding) note(ctx context.Context, text string) error {
	if w.restored() == 0 {
		return nil
	}
	return w.hub.write(ctx, func(t store.Tx) error {
		last, err := t.LastTurn(ctx, w.Turn.Session.ID)
		if err != nil {
			return err
		}
		return w.hub.transcript.Note(t, last, transcript.NoteRewound, text)
	})
}
