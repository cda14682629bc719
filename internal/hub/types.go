package hub

import (
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/gate"
)

// LaunchSpec asks for a run in a new thread, or in the one that ThreadAlias
// names. Only Prompt is required.
type LaunchSpec struct {
	Prompt   string
	Content  []domain.Content // what goes with it
	Title    string
	Agent    string // a name of the configuration; "": the default one
	CWD      string // "": the project's root; ~ is expanded; it must be a directory
	Source   string
	Model    string
	Mode     string // of Duet or of the agent; "": the thread's, and of a new one default
	Settings domain.Settings
	Priority int
	Timeout  time.Duration // 0: the configured one
	Tools    []string      // allowed; empty: all
	Quiet    bool          // no deltas
	Draft    bool          // only kept, not queued
	Metadata json.RawMessage
	Gates    gate.Spec

	ThreadUUID  string // of a new thread, as the caller chose it; "": one is made
	ThreadAlias string // the caller's own id of the conversation; prompts with the same one follow each other
	CallerID    string // the caller's own id of this run; it must be new

	chat bool // in the project's chat
}

// ContinueSpec asks for a run that follows another one: in the same thread if
// From is its last run or has not ended, else, or with Fork, in a fork of it. Where From is a
// draft, that run itself is launched.
type ContinueSpec struct {
	From       string           // any id
	Prompt     string           // may be empty where From is a draft: its own
	Content    []domain.Content // what goes with it; of a draft in the place of its own, if there is any
	Fork       bool             // also from the last run
	ThreadUUID string           // with Fork: of the new thread, as the caller chose it; "": one is made
	Source     string
	Settings   func(*domain.Settings) // changes what the thread has; nil: nothing
	Tools      []string               // allowed from now on; empty: as before
	Timeout    time.Duration          // from now on; 0: as before
	Priority   int
	Metadata   json.RawMessage
	Gates      gate.Spec // in the place of those that it would go on with
}

// Status is what the hub is doing (AIWG, daemon.status).
type Status struct {
	Started   time.Time
	MaxRuns   int
	Counts    domain.Counts
	Running   []domain.Session // those that have an agent
	Queued    []domain.Session // in the order in which they will start
	Executors int
	Pending   int // approvals
	LastSeq   int64
	Issues    []string // what is wrong; empty: healthy
	Database  string
}
