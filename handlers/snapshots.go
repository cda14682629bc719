package handlers

import (
	"context"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/changereview"
	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
)

type snapshotsResult struct {
	Snapshots []*snapshot `json:"snapshots"`
	Diff      string      `json:"diff" doc:"All changes as one unified diff, to be applied in the session's directory."`
}

// A snapshot is a file that a session changed.
type snapshot struct {
	SessionID string    `json:"session_id"`
	ToolID    string    `json:"tool_id" doc:"Always empty: what counts is what the session made of the file."`
	FilePath  string    `json:"file_path"`
	Content   string    `json:"content" doc:"The file before the session; empty if there was none."`
	Before    *string   `json:"before" doc:"The file before the session; null if there was none, or it is binary."`
	After     *string   `json:"after" doc:"The file as it was left; null if it is gone, or binary."`
	Binary    bool      `json:"binary"`
	Diff      string    `json:"diff" doc:"The change as a unified diff."`
	Hunks     []hunk    `json:"hunks" doc:"The hunks of diff, in order; session.decideChange decides about each. None where it is binary, an empty file, or too much to be told."`
	State     string    `json:"state" doc:"open, accepted or reverted: what was decided about all of it; open, too, where its hunks differ."`
	CreatedAt time.Time `json:"created_at"`
}

// A hunk is one change of a file, with the lines around it.
type hunk struct {
	ID       string `json:"id" doc:"The same as long as the change is."`
	OldStart int    `json:"old_start" doc:"As in its head in diff: of no lines 0."`
	OldLines int    `json:"old_lines"`
	NewStart int    `json:"new_start" doc:"In the file as the session left it; what was reverted is not reckoned in."`
	NewLines int    `json:"new_lines"`
	Added    int    `json:"added" doc:"How many lines."`
	Removed  int    `json:"removed"`
	State    string `json:"state" doc:"open, accepted or reverted."`
}

func hunksOf(f changereview.File) []hunk {
	list := make([]hunk, 0, len(f.Hunks))
	for _, h := range f.Hunks {
		list = append(list, hunk{h.ID, h.OldStart, h.OldLines, h.NewStart, h.NewLines, h.Added, h.Removed, h.State})
	}
	return list
}

func (s *snapshot) texts() []*string {
	list := []*string{&s.Content, &s.Diff}
	for _, text := range []*string{s.Before, s.After} {
		if text != nil {
			list = append(list, text)
		}
	}
	return list
}

func getSessionSnapshots(ctx context.Context, h *hub.Hub, p sessionParams) (snapshotsResult, error) {
	s, err := h.Query().Session(ctx, p.SessionID)
	if err != nil {
		return snapshotsResult{}, err
	}
	files, err := h.Review().Files(ctx, s)
	if err != nil {
		return snapshotsResult{}, err
	}
	return snapshotsOf(s, files, room(ctx)), nil
}

// snapshotsOf leaves half of most bytes to the diff, which is worth most, and a quarter at most
// to the hunks.
func snapshotsOf(s domain.Session, files []changereview.File, most int) snapshotsResult {
	r := snapshotsResult{Snapshots: []*snapshot{}}
	var all strings.Builder
	hunksLeft := most / 4
	for _, f := range files {
		one := &snapshot{
			SessionID: s.SessionID, FilePath: f.Path, Before: copied(f.Before), After: copied(f.After), Binary: f.Binary,
			Diff: f.Diff, Hunks: hunksOf(f), State: f.State, CreatedAt: f.Updated.UTC(),
		}
		if f.Binary {
			one.Diff = "Binary file " + f.Path + " differs\n"
		}
		if f.Before != nil {
			one.Content = *f.Before
		}
		if size := encodedSize(one.Hunks); size <= hunksLeft {
			hunksLeft -= size
		} else {
			one.Hunks = []hunk{}
		}
		all.WriteString(one.Diff)
		r.Snapshots = append(r.Snapshots, one)
	}
	r.Diff = all.String()
	for limit := most / 2; encodedSize(r.Diff) > most/2; limit /= 2 {
		r.Diff = dialect.Cut(r.Diff, limit)
	}
	r.Snapshots = fit(r.Snapshots, most-encodedSize(r.Diff))
	return r
}

func copied(s *string) *string {
	if s == nil {
		return nil
	}
	c := *s
	return &c
}

type decideChangeParams struct {
	SessionID string         `json:"session_id" doc:"The session that has made the change; every id of the run will do."`
	Path      string         `json:"path" doc:"A file_path of getSessionSnapshots; one that is relative is so to the session's directory."`
	Hunk      string         `json:"hunk,omitempty" doc:"The id of one hunk; absent: all of the file, all or nothing."`
	Decision  changeDecision `json:"decision" doc:"accept: it was seen, and stays. revert: it is taken back in the file on the disk; a file that the session made is deleted, one that it deleted is there again. reopen: nothing is decided any more; what was reverted is in the file again."`
}

func (p decideChangeParams) check() error {
	return first(need("session_id", p.SessionID), need("path", p.Path))
}

// A changeDecision is what a person says to a change.
type changeDecision string

// Accepted implements schema.Enum.
func (changeDecision) Accepted() []string {
	return []string{changereview.Accept, changereview.Revert, changereview.Reopen}
}

type decideChangeResult struct {
	Path  string `json:"path"`
	State string `json:"state" doc:"Of all of the file, as of getSessionSnapshots."`
	Hunks []hunk `json:"hunks" doc:"All of the file, as they are now."`
}

func decideChange(ctx context.Context, h *hub.Hub, p decideChangeParams) (decideChangeResult, error) {
	s, err := h.Query().Session(ctx, p.SessionID)
	if err != nil {
		return decideChangeResult{}, err
	}
	f, err := h.Review().Decide(ctx, s, changereview.Decision{Path: p.Path, Hunk: p.Hunk, Decision: string(p.Decision)})
	if err != nil {
		return decideChangeResult{}, err
	}
	r := decideChangeResult{f.Path, f.State, hunksOf(f)}
	if encodedSize(r.Hunks) > room(ctx)/2 {
		r.Hunks = []hunk{}
	}
	return r, nil
}
