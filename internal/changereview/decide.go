package changereview

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor/workspace"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Decision is a person's decision on a change.
type Decision struct {
	Path     string // as in the change, or relative to the session's directory
	Hunk     string // id of a Hunk, a Block or a Mode; "": the whole file
	Decision string // Accept, Revert or Reopen
}

// Decide stores a decision on a change of a turn, and returns the file with it. Repeating a decision
// is no error. Accepting a whole file leaves its reverted hunks reverted.
//
// The error is a *domain.Error: KindChangeNotFound if the turn has not changed the file,
// KindChangedSince if the file no longer has the lines, KindBadState for accepting a reverted hunk,
// KindNotKept if no text is stored, KindOutside for a path outside the project, KindNotWritable if
// the system refuses. The file is then unchanged.
func (r *Review) Decide(ctx context.Context, s domain.TurnInSession, d Decision) (File, error) {
	path := d.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.Session.CWD, path)
	}
	path = filepath.Clean(path)
	done, err := r.take(ctx, path)
	if err != nil {
		return File{}, err
	}
	defer done()
	from, err := r.file(ctx, s, path)
	if err != nil {
		return File{}, err
	}
	to, err := from.decided(d)
	if err != nil {
		return File{}, err
	}
	changed := from.changed(to)
	if len(changed) == 0 {
		return to, nil
	}
	undo := func() {}
	if from.writes(to) || from.setsMode(to) {
		if undo, err = r.write(s, from, &to); err != nil {
			return File{}, err
		}
		changed = from.changed(to) // with the mode of a deleted file
	}
	// Once the file has changed, the decision is stored even if the caller is gone.
	err = r.store(context.WithoutCancel(ctx), s, changed, domain.ChangeDecided{Path: path, Decision: d.Decision, Hunk: d.Hunk})
	if err != nil {
		undo()
		return File{}, err
	}
	return to, nil
}

// Restored stores that the changes of a turn in a file are no longer, or again, in the file on the disk.
// decision is Revert or Reopen. It writes no file.
func (r *Review) Restored(ctx context.Context, s domain.TurnInSession, from File, decision string) error {
	to := from.clone()
	for _, state := range to.states() {
		*state = after(*state, decision)
	}
	changed := from.changed(to)
	if len(changed) == 0 {
		return nil
	}
	return r.store(ctx, s, changed, domain.ChangeDecided{Path: from.Path, Decision: decision})
}

// store stores and announces a decision.
func (r *Review) store(ctx context.Context, s domain.TurnInSession, changed []domain.ChangeDecision, decided domain.ChangeDecided) error {
	return r.opts.Write(ctx, func(t store.Tx) error {
		for _, part := range changed {
			if err := t.PutChangeDecision(part); err != nil {
				return err
			}
		}
		_, err := t.Append(s.Turn.Event(decided))
		return err
	})
}

// decided returns the file with a decision applied.
func (f File) decided(d Decision) (File, error) {
	to := f.clone()
	chosen := to.states()
	if d.Hunk != "" {
		if chosen = to.named(d.Hunk); len(chosen) == 0 {
			return to, domain.Errorf(domain.KindChangeNotFound, "%s no longer has the change %s: list the changes again", f.Path, d.Hunk)
		}
		isLeft := func(state *string) bool { return *state != domain.ChangeReverted }
		if d.Decision == Accept && !slices.ContainsFunc(chosen, isLeft) {
			return to, domain.Errorf(domain.KindBadState, "this change of %s is reverted: reopen it to have it in the file again", f.Path)
		}
	}
	for _, state := range chosen {
		*state = after(*state, d.Decision)
	}
	to.agree()
	if f.Binary && (f.whole.state == domain.ChangeReverted) != (to.whole.state == domain.ChangeReverted) {
		return to, domain.Errorf(
			domain.KindNotKept, "%s is no text, or too long: what was in it before is not kept, so it cannot be reverted here", f.Path,
		)
	}
	return to, nil
}

// named returns the states of the parts that an id names.
func (f *File) named(id string) (list []*string) {
	for i, h := range f.Hunks {
		if h.ID == id || h.Block == id {
			list = append(list, &f.Hunks[i].State)
		}
	}
	if f.Mode != nil && f.Mode.ID == id {
		list = append(list, &f.Mode.State)
	}
	return list
}

// after returns the state that follows a state after a decision.
func after(state, decision string) string {
	switch decision {
	case Accept:
		if state == domain.ChangeReverted {
			return state
		}
		return domain.ChangeAccepted
	case Revert:
		return domain.ChangeReverted
	}
	return domain.ChangeOpen
}

// changed returns the parts whose states differ in to.
func (f File) changed(to File) (list []domain.ChangeDecision) {
	if f.whole.state != to.whole.state {
		list = append(list, domain.ChangeDecision{Turn: f.Turn, Part: f.whole.id, State: to.whole.state, Mode: to.whole.mode})
	}
	if f.Mode != nil && f.Mode.State != to.Mode.State {
		list = append(list, domain.ChangeDecision{Turn: f.Turn, Part: f.Mode.ID, State: to.Mode.State})
	}
	for i, h := range f.Hunks {
		if now := to.Hunks[i]; h.State != now.State {
			list = append(list, domain.ChangeDecision{Turn: f.Turn, Part: h.ID, State: now.State, Mode: now.mode})
		}
	}
	return list
}

// setsMode reports whether the executable bit differs in to.
func (f File) setsMode(to File) bool {
	return f.Mode != nil && (f.Mode.State == domain.ChangeReverted) != (to.Mode.State == domain.ChangeReverted)
}

// writes reports whether the text differs in to.
func (f File) writes(to File) bool {
	if (f.whole.state == domain.ChangeReverted) != (to.whole.state == domain.ChangeReverted) {
		return true
	}
	for i, h := range f.Hunks {
		if (h.State == domain.ChangeReverted) != (to.Hunks[i].State == domain.ChangeReverted) {
			return true
		}
	}
	return false
}

// write changes the file on disk. undo restores it, unless another program has changed it
// meanwhile.
func (r *Review) write(s domain.TurnInSession, from File, to *File) (undo func(), err error) {
	w := workspace.New(r.opts.Root(s.Session.CWD), s.Session.CWD, r.opts.StateDir)
	now, err := w.ReadExact(from.Path)
	if err != nil {
		return nil, refused(from.Path, err)
	}
	var text *string
	if now.Exists {
		text = &now.Text
	}
	result, trouble := text, noTrouble
	if from.writes(*to) {
		result, trouble = apply(text, from, *to)
	}
	if from.setsMode(*to) && text == nil {
		trouble = elsewhere
	}
	switch {
	case trouble == ambiguous:
		return nil, domain.Errorf(domain.KindChangedSince, "%s was changed since, and has these lines several times: nothing was done, since "+
			"it is not clear which of them are meant; change them by hand", from.Path)
	case trouble != noTrouble && text == nil:
		return nil, domain.Errorf(domain.KindChangedSince, "%s no longer exists; nothing was changed", from.Path)
	case trouble != noTrouble && (from.Before == nil || from.After == nil):
		return nil, domain.Errorf(
			domain.KindChangedSince, "%s is not as the session has left it: nothing was done, so that nothing of it is lost; change it by hand",
			from.Path,
		)
	case trouble != noTrouble:
		return nil, domain.Errorf(
			domain.KindChangedSince, "%s was changed here since: nothing was done; change it by hand, or undo what was changed and try again",
			from.Path,
		)
	}
	if result == nil {
		to.keepMode(uint32(now.Mode))
	}
	undo = func() {}
	if !same(text, result) {
		if err := w.Replace(from.Path, now, result, fs.FileMode(from.mode())); err != nil {
			return nil, refused(from.Path, err)
		}
		undo = func() {
			if is, err := w.ReadExact(from.Path); err == nil && is.Exists == (result != nil) && (result == nil || is.Text == *result) {
				_ = w.Replace(from.Path, is, text, now.Mode) // the caller gets the first error
			}
		}
	}
	if from.setsMode(*to) {
		mode := from.Mode.New
		if to.Mode.State == domain.ChangeReverted {
			mode = from.Mode.Old
		}
		if err := w.SetExecutable(from.Path, mode&0o100 != 0); err != nil {
			undo()
			return nil, refused(from.Path, err)
		}
		undoText := undo
		undo = func() {
			_ = w.SetExecutable(from.Path, now.Mode&0o100 != 0)
			undoText()
		}
	}
	return undo, nil
}

// mode returns the mode of the file that a full revert deleted, or 0.
func (f File) mode() uint32 {
	if len(f.Hunks) == 1 {
		return f.Hunks[0].mode
	}
	return f.whole.mode
}

func (f *File) keepMode(mode uint32) {
	if len(f.Hunks) == 1 {
		f.Hunks[0].mode = mode
		return
	}
	f.whole.mode = mode
}

// refused returns the error of a file that could not be read or written.
func refused(path string, err error) error {
	switch {
	case errors.Is(err, workspace.ErrOutside), errors.Is(err, workspace.ErrState), errors.Is(err, workspace.ErrGit):
		return &domain.Error{Kind: domain.KindOutside, Message: err.Error() + ": it is left alone", Err: err}
	case errors.Is(err, workspace.ErrChanged):
		return domain.Errorf(domain.KindChangedSince, "%s is being changed just now: nothing was done; try again in a moment", path)
	case errors.Is(err, fs.ErrPermission):
		return &domain.Error{
			Kind: domain.KindNotWritable, Message: path + " may not be written: nothing was done; let it be written (chmod u+w), and try again",
			Err: err,
		}
	}
	return &domain.Error{Kind: domain.KindNotWritable, Message: path + " could not be changed, and is as it was: " + err.Error(), Err: err}
}
