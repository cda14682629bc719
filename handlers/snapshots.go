package handlers

import (
	"context"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/diff"
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
	CreatedAt time.Time `json:"created_at"`
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
	changes, err := h.Query().Changes(ctx, p.SessionID)
	if err != nil {
		return snapshotsResult{}, err
	}
	return snapshotsOf(s, changes, room(ctx)), nil
}

// snapshotsOf leaves half of most bytes to the diff, which is worth most.
func snapshotsOf(s domain.Session, changes []domain.Change, most int) snapshotsResult {
	r := snapshotsResult{Snapshots: []*snapshot{}}
	var all strings.Builder
	for _, c := range changes {
		one := &snapshot{
			SessionID: s.SessionID, FilePath: c.Path, Before: copied(c.Before), After: copied(c.After), Binary: c.Binary,
			Diff: diffOf(s.Thread.CWD, c), CreatedAt: c.Updated.UTC(),
		}
		if c.Before != nil {
			one.Content = *c.Before
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

// diffOf is a change as git would show it, with paths relative to the
// session's directory where they are in it.
func diffOf(cwd string, c domain.Change) string {
	if c.Binary {
		return "Binary file " + c.Path + " differs\n"
	}
	return diff.Unified(cwd, c.Path, c.Before, c.After)
}
