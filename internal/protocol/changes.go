package protocol

import (
	"cmp"
	"time"

	"github.com/duet-rpc/duet-rpc/server"
)

// A ChangeList has the files that a turn changed.
type ChangeList struct {
	Turn     string `json:"turn" doc:"The turn, such as 12.3."`
	TurnUUID string `json:"turn_uuid"`

	Changes []*Change `json:"changes"`
	Diff    string    `json:"diff" doc:"All changes as one unified diff, relative to the session's directory."`
	// NotRecorded tells an empty list that is certain from one that may lack what commands changed.
	NotRecorded bool `json:"not_recorded,omitempty" doc:"true: the list is empty, and there is no checkpoint of before the turn, or no longer. Changes of the agent's commands may be missing."`
}

// A Change is a file that a turn changed.
type Change struct {
	Path      string    `json:"path"`
	Renamed   string    `json:"renamed_from,omitempty" doc:"The path of a file that the turn has deleted and whose text this new one has, in whole or for the most part. That file is a change of its own."`
	Before    *string   `json:"before" doc:"The file before the turn. null if it did not exist, or is binary."`
	After     *string   `json:"after" doc:"The file after the turn. null if it no longer exists, or is binary."`
	Binary    bool      `json:"binary"`
	Diff      string    `json:"diff" doc:"The change as a unified diff."`
	Hunks     []Hunk    `json:"hunks" doc:"The hunks of diff, in order. Empty if the file is binary or empty, or if they do not fit into the result."`
	Mode      *FileMode `json:"mode,omitempty" doc:"The change of the file's executable bit. A decision about the whole file includes it. Absent if there is none."`
	State     string    `json:"state" doc:"The decision about the whole file: open, accepted or reverted. open also if its hunks differ."`
	ChangedAt time.Time `json:"changed_at"`
}

// Texts returns the texts that may be cut if a message is too long.
func (c *Change) Texts() []*string {
	list := []*string{&c.Diff}
	for _, text := range []*string{c.Before, c.After} {
		if text != nil {
			list = append(list, text)
		}
	}
	return list
}

// A Hunk is one or several changes of a file, with the lines around them.
type Hunk struct {
	ID       string `json:"id" doc:"Stable while the change exists."`
	OldStart int    `json:"old_start" doc:"As in the hunk's header in diff; 0 if there are no lines."`
	OldLines int    `json:"old_lines"`
	NewStart int    `json:"new_start" doc:"Line in the file as the turn left it, without regard to reverted hunks."`
	NewLines int    `json:"new_lines"`
	Added    int    `json:"added" doc:"Number of added lines."`
	Removed  int    `json:"removed"`
	State    string `json:"state" doc:"open, accepted or reverted. open also if its parts differ."`

	Parts []HunkPart `json:"parts,omitempty" doc:"The changes of the hunk, in order, if there are several. Each can be decided alone."`
}

// A HunkPart is one change of a hunk, without unchanged lines.
type HunkPart struct {
	ID       string `json:"id" doc:"For change.accept, change.revert and change.reopen, as that of a hunk."`
	OldStart int    `json:"old_start" doc:"The line before the change if old_lines is 0."`
	OldLines int    `json:"old_lines" doc:"Number of lines that the change removed."`
	NewStart int    `json:"new_start" doc:"Line in the file as the turn left it; the line before the change if new_lines is 0."`
	NewLines int    `json:"new_lines" doc:"Number of lines that the change added."`
	State    string `json:"state" doc:"open, accepted or reverted."`
}

// FileMode is a change of a file's executable bit.
type FileMode struct {
	ID    string `json:"id" doc:"For change.accept, change.revert and change.reopen, as that of a hunk."`
	Old   string `json:"old" doc:"The mode before the turn, as git has it: 100644 or 100755."`
	New   string `json:"new"`
	State string `json:"state" doc:"open, accepted or reverted."`
}

// ChangeParams name a change: a hunk of a file, or the whole file.
type ChangeParams struct {
	Turn Ref    `json:"turn" doc:"The turn that made the change, such as 12.3; a session means its last turn."`
	Path string `json:"path" doc:"A path from change.list. A relative path is relative to the session's directory."`
	Hunk string `json:"hunk,omitempty" doc:"The id of one hunk, of one of its parts, or of the change of the mode. Absent: the whole file, all or nothing."`
}

func (p ChangeParams) Check() error {
	return cmp.Or(NotEmpty("turn", string(p.Turn)), NotEmpty("path", p.Path))
}

// A DecidedChange is a file after a decision about it.
type DecidedChange struct {
	Path  string    `json:"path"`
	State string    `json:"state" doc:"The state of the whole file, as in change.list."`
	Hunks []Hunk    `json:"hunks" doc:"All hunks of the file, in their current state."`
	Mode  *FileMode `json:"mode,omitempty" doc:"As in change.list."`
}

type RewindParams struct {
	Turn    Ref  `json:"turn" doc:"The turn before which the files are to be as they were, such as 12.3; a session means its last turn."`
	All     bool `json:"all,omitempty" doc:"Also restore the files that others have changed since."`
	Preview bool `json:"preview,omitempty" doc:"Change nothing, only return what would change."`
	Undo    bool `json:"undo,omitempty" doc:"Undo the last rewind to before this turn that is not undone: its files become as they were before it. Files that were edited after it are left alone; the same call tries them again once. Without all and preview."`
}

func (p RewindParams) Check() error {
	if p.Undo && (p.All || p.Preview) {
		return server.InvalidParam(server.ParamError{Param: "undo", Expected: "no other than turn with undo", Received: "all or preview"})
	}
	return NotEmpty("turn", string(p.Turn))
}

type RewindResult struct {
	Checkpoint      bool          `json:"checkpoint" doc:"false: the files before the turn are not recorded, or no longer, so no file is restored. Checkpoints need git, and can be disabled in the configuration."`
	Files           []RewindFile  `json:"files" doc:"The files that differ from those before the turn, by path."`
	More            int           `json:"more" doc:"How many more files there are, which do not fit into the result."`
	NotRecorded     []NotRecorded `json:"not_recorded,omitempty" doc:"Files that are not recorded, and so stay as they are."`
	MoreNotRecorded int           `json:"more_not_recorded,omitempty" doc:"How many more of them there are."`
	ForkTurn        string        `json:"fork_turn,omitempty" doc:"The turn before, such as 12.2: session.fork continues the session from there. Absent: the session begins with this turn."`
	Prompt          string        `json:"prompt" doc:"The prompt of the turn."`
}

func (r *RewindResult) Texts() []*string { return []*string{&r.Prompt} }

// NotRecorded is a file that checkpoints do not have.
type NotRecorded struct {
	Path   string `json:"path" doc:"Empty for untracked."`
	Reason string `json:"reason" doc:"too-large (over 10 MB), special (a socket, named pipe or device), nested-repository, unreadable, reserved (a name of git), untracked (all files that git does not track, because there are too many), or changed (while files were first recorded)."`
}

// A RewindFile is a file that session.rewind restores or leaves.
type RewindFile struct {
	Path    string `json:"path"`
	Change  string `json:"change" doc:"What happens to the file: added (it is there again), deleted, modified, mode (only its executable bit) or type (a link becomes a file, or the reverse)."`
	Added   int    `json:"added" doc:"Number of lines that come back."`
	Removed int    `json:"removed" doc:"Number of lines that go."`
	Left    string `json:"left,omitempty" doc:"The file stays as it is, because: edited (it was edited after the session's last change of it), other (the session has not changed it) or busy (see detail). With all, edited and other are restored."`
	Detail  string `json:"detail,omitempty" doc:"Why a file could not be restored."`
}
