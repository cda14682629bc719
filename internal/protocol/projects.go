package protocol

import (
	"cmp"
	"time"
)

// A Project is a directory with sessions on this machine.
type Project struct {
	Root     string    `json:"root" doc:"The project's directory."`
	StateDir string    `json:"state_dir" doc:"The directory with its sessions, rules and logs."`
	Sessions int       `json:"sessions" doc:"Number of sessions."`
	Bytes    int64     `json:"bytes" doc:"The size of the files in state_dir."`
	LastUsed time.Time `json:"last_used" doc:"When the last daemon of the project started."`
	Missing  bool      `json:"missing" doc:"The project's directory does not exist."`
	Replaced bool      `json:"replaced" doc:"The directory was deleted and created again. What was allowed before does not count."`
	Error    string    `json:"error,omitempty" doc:"Why the sessions could not be counted."`
}

// A ProjectList has all projects of the user on this machine.
type ProjectList struct {
	Projects []Project `json:"projects" doc:"The last used first."`
}

type DirectoriesParams struct {
	Limit *uint `json:"limit,omitempty" doc:"Default 20, at most 1000."`
}

// DirectoryList has the working directories of a project's sessions.
type DirectoryList struct {
	Directories []Directory `json:"directories" doc:"The last used first."`
}

// A Directory is the working directory of sessions.
type Directory struct {
	Path     string    `json:"path"`
	LastUsed time.Time `json:"last_used" doc:"The last activity of a session there."`
	Sessions int       `json:"sessions" doc:"Number of sessions."`
}

type KeepProjectParams struct {
	Root string `json:"root,omitempty" doc:"The project's directory, an absolute path. Default: the daemon's own project."`
}

func (p KeepProjectParams) Check() error {
	if p.Root == "" {
		return nil
	}
	return absolute("root", p.Root)
}

type KeptProject struct {
	Root string `json:"root"`
	Kept bool   `json:"kept" doc:"false: the directory was not replaced, so everything that the user allowed counted already."`
}

type MoveProjectParams struct {
	From string `json:"from" doc:"The project's directory until now, an absolute path. It need not exist."`
	To   string `json:"to" doc:"The project's new directory, an absolute path. It must exist and have no sessions."`
}

func (p MoveProjectParams) Check() error {
	return cmp.Or(absolute("from", p.From), absolute("to", p.To))
}

type MovedProject struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type ForgetProjectParams struct {
	Root string `json:"root" doc:"The project's directory, an absolute path. It need not exist."`
}

func (p ForgetProjectParams) Check() error { return absolute("root", p.Root) }

type ForgottenProject struct {
	Root          string `json:"root"`
	WorktreesKept string `json:"worktrees_kept,omitempty" doc:"A directory with worktrees that stay, because their repository is gone."`
}
