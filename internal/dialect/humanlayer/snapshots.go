package humanlayer

import (
	"time"

	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// A SnapshotsResult is the result of getSessionSnapshots.
type SnapshotsResult struct {
	Snapshots []*Snapshot `json:"snapshots"`
	Diff      string      `json:"diff" doc:"All changes as one unified diff, relative to the session's directory."`
	// NotRecorded tells an empty list that is certain from one that may lack what commands changed.
	NotRecorded bool `json:"not_recorded,omitempty" doc:"true: the list is empty, and there is no checkpoint of before the session, or no longer. Changes of the agent's commands may be missing."`
}

// A Snapshot is a file that a session changed.
type Snapshot struct {
	SessionID string             `json:"session_id"`
	ToolID    string             `json:"tool_id" doc:"Always empty: a snapshot covers the whole session, not one tool call."`
	FilePath  string             `json:"file_path"`
	Renamed   string             `json:"renamed_from,omitempty" doc:"The path of a file that the session has deleted and whose text this new one has, in whole or for the most part. It has a snapshot of its own."`
	Content   string             `json:"content" doc:"The file before the session. Empty if it did not exist."`
	Before    *string            `json:"before" doc:"The file before the session. null if it did not exist, or is binary."`
	After     *string            `json:"after" doc:"The file after the session. null if it no longer exists, or is binary."`
	Binary    bool               `json:"binary"`
	Diff      string             `json:"diff" doc:"The change as a unified diff."`
	Hunks     []protocol.Hunk    `json:"hunks" doc:"The hunks of diff, in order. Empty if the file is binary or empty, or if they do not fit into the result."`
	Mode      *protocol.FileMode `json:"mode,omitempty" doc:"The change of the file's executable bit. A decision about the whole file includes it. Absent if there is none."`
	State     string             `json:"state" doc:"The decision about the whole file: open, accepted or reverted. open also if its hunks differ."`
	CreatedAt time.Time          `json:"created_at"`
}

func (s *Snapshot) Texts() []*string {
	list := []*string{&s.Content, &s.Diff}
	for _, text := range []*string{s.Before, s.After} {
		if text != nil {
			list = append(list, text)
		}
	}
	return list
}

// SnapshotOf returns a change in HumanLayer's form. It shares the change's texts.
func SnapshotOf(session string, c *protocol.Change) *Snapshot {
	return &Snapshot{
		SessionID: session, FilePath: c.Path, Renamed: c.Renamed, Content: protocol.Value(c.Before), Before: c.Before, After: c.After,
		Binary: c.Binary,
		Diff:   c.Diff, Hunks: c.Hunks, Mode: c.Mode, State: c.State, CreatedAt: c.ChangedAt,
	}
}
