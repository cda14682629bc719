package protocol

// A WorktreeState is the git worktree of a conversation.
type WorktreeState struct {
	Branch string `json:"branch" doc:"The branch that it began with."`
	Dir    string `json:"dir" doc:"The top of its files."`
	Gone   bool   `json:"gone,omitempty" doc:"It was discarded or deleted. The conversation can only be forked, which continues it in the project's directory."`
}

type LandParams struct {
	SessionID string     `json:"session_id" doc:"A session of the conversation, by any id of the run."`
	Method    LandMethod `json:"method,omitempty" doc:"merge (default): a merge commit, or none if the branch can be moved forward. squash: one new commit. rebase: each commit again. patch: no commit; the user's files are changed."`
	Into      string     `json:"into,omitempty" doc:"The branch to land on. Absent: the one that was checked out when the worktree was made. Without meaning for patch."`
	Message   string     `json:"message,omitempty" doc:"The message of the new commit. Absent: a plain one."`
}

func (p LandParams) Check() error { return NotEmpty("session_id", p.SessionID) }

// A LandMethod says how the commits of a worktree come to a branch.
type LandMethod string

// Accepted implements schema.Enum.
func (LandMethod) Accepted() []string { return []string{"", "merge", "squash", "rebase", "patch"} }

type LandResult struct {
	Branch  string   `json:"branch" doc:"The branch that has the changes now. Empty with patch."`
	Commits []string `json:"commits" doc:"The new commits of the branch, the oldest first. Empty if there was nothing new."`
	Files   []string `json:"files" doc:"The changed files, relative to the top of the repository."`
	More    int      `json:"more,omitempty" doc:"How many more files there are, which do not fit into the result."`
	Nested  []string `json:"nested,omitempty" doc:"Git repositories in the worktree, which are not landed."`
}

type DiscardParams struct {
	SessionID string `json:"session_id" doc:"A session of the conversation, by any id of the run."`
	Force     bool   `json:"force,omitempty" doc:"Also discard work that is not landed. It is kept in a git ref first."`
}

func (p DiscardParams) Check() error { return NotEmpty("session_id", p.SessionID) }

type DiscardResult struct {
	Ref        string `json:"ref,omitempty" doc:"The git ref that keeps the work that was not landed: git branch NAME REF brings it back. Absent: there was none."`
	BranchKept bool   `json:"branch_kept,omitempty" doc:"The branch stays, because another working tree has it checked out."`
	Cleanup    string `json:"cleanup_error,omitempty" doc:"Why the configured cleanup command failed. The worktree is deleted all the same."`
}

// A WorktreeError is the data of an error of session.land, session.discard and session.delete.
type WorktreeError struct {
	Kind   string   `json:"kind"`
	Paths  []string `json:"paths,omitempty"`
	More   int      `json:"more,omitempty"` // further paths
	Losses *Losses  `json:"losses,omitempty"`
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
	Count int      `json:"count"`
	First []string `json:"first"`
}
