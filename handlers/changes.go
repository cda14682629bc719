package handlers

import (
	"context"
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/changereview"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerChanges registers the methods of the noun change, session.rewind, and HumanLayer's list.
func registerChanges(reg *server.Registry, d Domain) {
	f := nativeFamily
	handle(reg, d, f, "change.list", listChanges, server.Releasing(), // it may look for a checkpoint
		server.Doc("Returns the files that a turn changed, their diffs, and the decision about each change."))
	for _, one := range []struct{ verb, doc string }{
		{"accept", "Accepts a change of a turn, one hunk or a whole file: the user has seen it and keeps it. A hunk that was reverted is " +
			"refused (`bad_state`)."},
		{"revert", "Reverts a change of a turn on the disk, one hunk or a whole file. This deletes a file that the turn created, and restores " +
			"one that it deleted. Duet searches for the hunk's lines in the current file; if they are gone or not unique, it changes nothing " +
			"(`changed_since`). Other edits of the file stay."},
		{"reopen", "Withdraws the decision about a change of a turn, one hunk or a whole file. A reverted change is made again on the disk."},
	} {
		handle(reg, d, f, "change."+one.verb, func(ctx context.Context, h *hub.Hub, p protocol.ChangeParams) (protocol.DecidedChange, error) {
			return decideChange(ctx, h, p, one.verb)
		}, server.LongRunning(), server.Doc(one.doc+" All clients get the event change_decided. Other values of data.kind: `change_not_found`, "+
			"`not_kept` (a binary file can only be accepted), `outside_workspace`, `not_writable`."))
	}
	handle(reg, d, f, "session.rewind", rewind, server.LongRunning(),
		server.Doc("Restores the files that a turn and the later turns of its session have changed, shell commands included, to their state "+
			"before the turn. Files that others have changed since are left alone, unless all is set. The session stays as it is; fork_turn and "+
			"prompt are for a fork that continues it from there. Refused while the session works, with all also while another one works in its "+
			"directory, and undo if nothing was rewound (`bad_state`)."))
}

func listChanges(ctx context.Context, h *hub.Hub, p protocol.TurnParams) (protocol.ChangeList, error) {
	return changesWithin(ctx, h, string(p.Turn), protocol.Room(ctx))
}

// changesWithin returns the files that a turn changed in at most most bytes. Of these the complete diff
// takes at most a half, the hunks a quarter.
func changesWithin(ctx context.Context, h *hub.Hub, turn string, most int) (protocol.ChangeList, error) {
	r, err := changesOf(ctx, h, turn, most)
	r.Changes = protocol.Fit(r.Changes, most-protocol.EncodedSize(r.Diff))
	return r, err
}

func changesOf(ctx context.Context, h *hub.Hub, id string, most int) (protocol.ChangeList, error) {
	r := protocol.ChangeList{Changes: []*protocol.Change{}}
	t, err := h.Query().Turn(ctx, id)
	if err != nil {
		return r, err
	}
	r.Turn, r.TurnUUID = t.Turn.Name(), t.HumanLayerSession
	files, err := h.Review().Files(ctx, t)
	if err == nil && len(files) == 0 && t.Turn.State.Ended() {
		server.Release(ctx)
		if r.NotRecorded, err = h.NotRecorded(ctx, t); err == nil { // it has waited for what was being recorded
			files, err = h.Review().Files(ctx, t)
		}
	}
	if err != nil {
		return r, err
	}
	var all strings.Builder
	hunksLeft := most / 4
	for _, f := range files {
		one := changeOf(f)
		if size := protocol.EncodedSize(one.Hunks); size <= hunksLeft {
			hunksLeft -= size
		} else {
			one.Hunks = []protocol.Hunk{}
		}
		all.WriteString(one.Diff)
		r.Changes = append(r.Changes, one)
	}
	r.Diff = all.String()
	for limit := most / 2; protocol.EncodedSize(r.Diff) > most/2; limit /= 2 {
		r.Diff = protocol.Cut(r.Diff, limit)
	}
	r.NotRecorded = r.NotRecorded && len(files) == 0
	return r, nil
}

func changeOf(f changereview.File) *protocol.Change {
	c := &protocol.Change{
		Path: f.Path, Renamed: f.RenamedFrom, Before: copied(f.Before), After: copied(f.After), Binary: f.Binary,
		Diff: f.Diff, Hunks: hunksOf(f), Mode: modeOf(f), State: f.State, ChangedAt: f.Updated.UTC(),
	}
	if f.Binary {
		c.Diff += "Binary file " + f.Path + " differs\n" // after the mode
	}
	return c
}

func hunksOf(f changereview.File) []protocol.Hunk {
	list := make([]protocol.Hunk, 0, len(f.InDiff))
	for _, b := range f.InDiff {
		changes, state := f.Of(b)
		list = append(list, protocol.Hunk{
			ID: b.ID, OldStart: b.OldStart, OldLines: b.OldLines, NewStart: b.NewStart, NewLines: b.NewLines, Added: b.Added, Removed: b.Removed,
			State: state, Parts: partsOf(changes),
		})
	}
	return list
}

// partsOf returns the changes of a hunk, or none if it is one change.
func partsOf(changes []changereview.Hunk) (list []protocol.HunkPart) {
	if len(changes) < 2 {
		return nil
	}
	for _, c := range changes {
		at := c.Bare()
		list = append(list, protocol.HunkPart{
			ID: c.ID, OldStart: at.OldStart, OldLines: at.OldLines, NewStart: at.NewStart, NewLines: at.NewLines, State: c.State,
		})
	}
	return list
}

func modeOf(f changereview.File) *protocol.FileMode {
	if f.Mode == nil {
		return nil
	}
	return &protocol.FileMode{ID: f.Mode.ID, Old: fmt.Sprintf("%o", f.Mode.Old), New: fmt.Sprintf("%o", f.Mode.New), State: f.Mode.State}
}

func copied(s *string) *string {
	if s == nil {
		return nil
	}
	c := *s
	return &c
}

func decideChange(ctx context.Context, h *hub.Hub, p protocol.ChangeParams, decision string) (protocol.DecidedChange, error) {
	t, err := h.Query().Turn(ctx, string(p.Turn))
	if err != nil {
		return protocol.DecidedChange{}, err
	}
	f, err := h.Review().Decide(ctx, t, changereview.Decision{Path: p.Path, Hunk: p.Hunk, Decision: decision})
	if err != nil {
		return protocol.DecidedChange{}, err
	}
	r := protocol.DecidedChange{Path: f.Path, State: f.State, Hunks: hunksOf(f), Mode: modeOf(f)}
	if protocol.EncodedSize(r.Hunks) > protocol.Room(ctx)/2 {
		r.Hunks = []protocol.Hunk{}
	}
	return r, nil
}

func rewind(ctx context.Context, h *hub.Hub, p protocol.RewindParams) (protocol.RewindResult, error) {
	var r hub.Rewound
	var err error
	if p.Undo {
		r, err = h.UndoRewind(ctx, string(p.Turn))
	} else {
		r, err = h.Rewind(ctx, hub.RewindSpec{Turn: string(p.Turn), All: p.All, Preview: p.Preview})
	}
	result := protocol.RewindResult{Checkpoint: r.Checkpoint, Files: []protocol.RewindFile{}, Prompt: r.Turn.Prompt}
	for _, f := range r.Files {
		result.Files = append(result.Files,
			protocol.RewindFile{Path: f.Path, Change: string(f.Kind), Added: f.AddedLines, Removed: f.DeletedLines, Left: f.Left, Detail: f.Detail})
	}
	for _, n := range r.NotRecorded {
		result.NotRecorded = append(result.NotRecorded, protocol.NotRecorded{Path: n.Path, Reason: string(n.Reason)})
	}
	result.MoreNotRecorded = r.MoreNotRecorded
	if r.Turn.ParentHumanLayerSession != "" && err == nil {
		result.ForkTurn, err = h.Query().ParentName(ctx, r.Turn)
	}
	for protocol.EncodedSize(result.Files) > protocol.Room(ctx)/2 {
		result.Files = result.Files[:len(result.Files)/2]
		result.More = len(r.Files) - len(result.Files)
	}
	return result, err
}
