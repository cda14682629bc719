package protocol

import (
	"encoding/json"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// A WorktreeState is the git worktree of a session.
type WorktreeState struct {
	Branch string `json:"branch" doc:"The branch that it began with."`
	Dir    string `json:"dir" doc:"The top of its files."`
	Gone   bool   `json:"gone,omitempty" doc:"It was discarded or deleted. The session can only be forked, which continues it in the project's directory."`
}

type LandParams struct {
	Session Ref        `json:"session" doc:"The session."`
	Method  LandMethod `json:"method,omitempty" doc:"merge (default): a merge commit, or none if the branch can be moved forward. squash: one new commit. rebase: each commit again. patch: no commit; the user's files are changed."`
	Into    string     `json:"into,omitempty" doc:"The branch to land on. Absent: the one that was checked out when the worktree was made. Without meaning for patch."`
	Message string     `json:"message,omitempty" doc:"The message of the new commit. Absent: a plain one."`
}

func (p LandParams) Check() error { return NotEmpty("session", string(p.Session)) }

// A LandMethod says how the commits of a worktree come to a branch.
type LandMethod string

// Accepted implements schema.Enum.
func (LandMethod) Accepted() []string { return []string{"", "merge", "squash", "rebase", "patch"} }

type LandResult struct {
	Branch     string   `json:"branch" doc:"The branch that has the changes now. Empty with patch."`
	Commits    []string `json:"commits" doc:"The new commits of the branch, the oldest first. Empty if there was nothing new."`
	Files      []string `json:"files" doc:"The changed files, relative to the top of the repository."`
	More       int      `json:"more,omitempty" doc:"How many more files there are, which do not fit into the result."`
	Nested     []string `json:"nested,omitempty" doc:"Git repositories in the worktree, and submodules with work, which are not landed."`
	Unfiltered *Listing `json:"unfiltered,omitempty" doc:"Files that this committed as they are, without the filter that .gitattributes names for them (Git LFS, git-crypt): its program is configured nowhere, or only in the repository, which is not trusted."`
}

type SaveParams struct {
	Session Ref    `json:"session" doc:"The session."`
	Name    string `json:"name,omitempty" doc:"The name of the author of the files that are not committed, with email. Absent: Duet."`
	Email   string `json:"email,omitempty" doc:"The author's e-mail address."`
	Landed  string `json:"landed,omitempty" doc:"The commit of an earlier call, after it was landed in another repository. If it still has all files of the worktree, the worktree's branch gets it, as it does after session.land."`
}

func (p SaveParams) Check() error { return NotEmpty("session", string(p.Session)) }

type SaveResult struct {
	Commit string   `json:"commit" doc:"The commit. The ref refs/duet/saved/SESSION_UUID of the repository has it."`
	Name   string   `json:"name" doc:"The worktree's name: its branch is duet/NAME."`
	Nested []string `json:"nested,omitempty" doc:"Git repositories in the worktree, and submodules with work, which the commit does not have."`
}

type DiscardParams struct {
	Session Ref  `json:"session" doc:"The session."`
	Force   bool `json:"force,omitempty" doc:"Also discard work that is not landed. It is kept in a git ref first."`
}

func (p DiscardParams) Check() error { return NotEmpty("session", string(p.Session)) }

type DiscardResult struct {
	Ref        string `json:"ref,omitempty" doc:"The git ref that keeps the work that was not landed: git branch NAME REF brings it back. Absent: there was none."`
	BranchKept bool   `json:"branch_kept,omitempty" doc:"The branch stays, because another working tree has it checked out."`
	Cleanup    string `json:"cleanup_error,omitempty" doc:"Why the configured cleanup command failed. The worktree is deleted all the same."`
	Host       string `json:"host,omitempty" doc:"Of a host that was made for the session: removed, or kept because it has other sessions or host_error. Absent: there was none."`
	HostError  string `json:"host_error,omitempty" doc:"Why the host was not removed, with the command that removes it. The worktree is deleted all the same."`
}

// The values of DiscardResult.Host.
const (
	HostRemoved = "removed"
	HostKept    = "kept"
)

// A WorktreeError is the data of an error of session.land, session.discard and session.delete.
type WorktreeError struct {
	Kind   string   `json:"kind"`
	Paths  []string `json:"paths,omitempty"`
	More   int      `json:"more,omitempty"` // further paths
	Ref    string   `json:"ref,omitempty"`  // of a conflict with work on a host: the ref there that has the branch, for the agent to merge
	Losses *Losses  `json:"losses,omitempty"`
}

const pathsInError = 200

// WorktreeErrorOf returns the data of the error of a landing; is is false for errors that have no paths.
func WorktreeErrorOf(err error) (data WorktreeError, is bool) {
	var conflict *worktree.ConflictError
	var overlap *worktree.OverlapError
	var paths []string
	switch {
	case errors.As(err, &conflict):
		data.Kind, data.Ref = "conflict", conflict.Ref
		for _, c := range conflict.Conflicts {
			paths = append(paths, c.Path)
		}
	case errors.As(err, &overlap):
		data.Kind, paths = "overlap", overlap.Paths
	}
	shown := min(len(paths), pathsInError)
	data.Paths, data.More = paths[:shown], len(paths)-shown
	return data, data.Kind != ""
}

// Losses is what discarding a worktree would delete. Paths are relative to its top.
type Losses struct {
	Commits     *Listing `json:"commits,omitempty"`
	Uncommitted *Listing `json:"uncommitted,omitempty"`
	Untracked   *Listing `json:"untracked,omitempty"`
	Nested      *Listing `json:"nested,omitempty"`  // git repositories, which no ref keeps
	Ignored     *Listing `json:"ignored,omitempty"` // which no ref keeps
}

// A Listing is a number of commits or files, and the first of them.
type Listing struct {
	Count int      `json:"count" doc:"How many there are."`
	First []string `json:"first" doc:"At most 20 of them."`
}

// StartAttemptsParams are those of session.start with several agents.
type StartAttemptsParams struct {
	Prompt     string         `json:"prompt" doc:"The prompt."`
	Agents     []AttemptAgent `json:"agents" doc:"2 to 10 agents. An agent may be in it several times."`
	Title      string         `json:"title,omitempty" doc:"The title of each session."`
	WorkingDir string         `json:"working_dir,omitempty" doc:"As in session.start; in a git repository with a commit."`
	AgentSettings
	PromptContent
	Priority  int   `json:"priority,omitempty" doc:"Higher runs first."`
	TimeoutMS *uint `json:"timeout_ms,omitempty" doc:"Time limit of each turn in milliseconds. Absent or 0: as configured."`
	Gated
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"A JSON object that is stored with each turn."`
}

// An AttemptAgent is an agent that works on a prompt, with its settings.
type AttemptAgent struct {
	Agent   string            `json:"agent,omitempty" doc:"The agent's name in the configuration. Default: the default agent."`
	Model   string            `json:"model,omitempty" doc:"As in session.start."`
	Mode    string            `json:"mode,omitempty" doc:"As in session.start."`
	Options map[string]string `json:"options,omitempty" doc:"As in session.start."`
}

type StartAttemptsResult struct {
	Turns []Started `json:"turns" doc:"In the order of agents."`
}

type AttemptsParams struct {
	Session  Ref    `json:"session,omitempty" doc:"The session of one of the attempts."`
	Attempts string `json:"attempts,omitempty" doc:"The id that all of them have, instead of a session."`
	Patch    bool   `json:"patch,omitempty" doc:"Also return the patch of each attempt."`
}

func (p AttemptsParams) Check() error { return NotEmpty("session", string(p.Session)+p.Attempts) }

type AttemptsResult struct {
	Prompt   string    `json:"prompt" doc:"The prompt of all attempts."`
	Attempts []Attempt `json:"attempts" doc:"In the order of their start."`
}

// An Attempt is one of several sessions with the same prompt.
type Attempt struct {
	Name        string         `json:"turn" doc:"The last turn of the session, such as 12.3."`
	Session     int64          `json:"session" doc:"The session's number in the project."`
	ID          string         `json:"turn_uuid"`
	SessionUUID string         `json:"session_uuid"`
	Agent       string         `json:"agent"`
	Model       string         `json:"model,omitempty"`
	State       domain.State   `json:"state"`
	Error       string         `json:"error,omitempty"`
	Result      string         `json:"result,omitempty" doc:"The beginning of the agent's last message."`
	Usage       Usage          `json:"usage" doc:"Of the session."`
	Gates       *Gates         `json:"gates,omitempty" doc:"The state of the gates. Absent without gates."`
	Worktree    *WorktreeState `json:"worktree,omitempty"`

	Unknown  string       `json:"unknown,omitempty" doc:"Why the members below are not known."`
	Files    []FileChange `json:"files" doc:"The changed files, committed or not, since the commit that the branch and the user's branch share."`
	More     int          `json:"more,omitempty" doc:"How many more files there are, which do not fit into the result."`
	Added    int          `json:"added" doc:"Added lines in all files."`
	Removed  int          `json:"removed" doc:"Removed lines in all files."`
	Commits  int          `json:"commits" doc:"The commits of the branch. Files that are not committed become one when they are landed."`
	Landed   bool         `json:"landed,omitempty" doc:"The branch has no work that is not landed."`
	Patch    string       `json:"patch,omitempty" doc:"A unified diff of the files. With patch."`
	PatchCut bool         `json:"patch_cut,omitempty" doc:"The patch is not complete, because it does not fit into the result."`
}

// A FileChange counts the changed lines of a file.
type FileChange struct {
	Path    string `json:"path" doc:"Relative to the top of the repository."`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary,omitempty" doc:"Its lines are not counted."`
}

type ChooseAttemptParams struct {
	LandParams
	Interrupt bool `json:"interrupt,omitempty" doc:"Interrupt the other attempts that still work. Otherwise they are an error (bad_state)."`
}

type ChooseAttemptResult struct {
	LandResult
	Discarded []DiscardedAttempt `json:"discarded" doc:"The other attempts."`
}

// A DiscardedAttempt is an attempt that was not chosen.
type DiscardedAttempt struct {
	Turn     string `json:"turn"`
	TurnUUID string `json:"turn_uuid"`
	Agent    string `json:"agent"`
	DiscardResult
	Error string `json:"error,omitempty" doc:"Why the worktree stays."`
}
