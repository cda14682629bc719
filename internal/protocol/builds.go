package protocol

import "github.com/duet-rpc/duet-rpc/internal/domain"

type BuildParams struct {
	Name string `json:"name,omitempty" doc:"One of listBuilds; absent: the first one."`
}

// A BuildTarget is something that can be built, as clients see it.
type BuildTarget struct {
	Name      string   `json:"name"`
	Command   []string `json:"command" doc:"The program and its arguments."`
	Directory string   `json:"directory,omitempty" doc:"In which it runs, relative to the project's; absent: that."`
	Backend   bool     `json:"backend" doc:"buildBackend builds it."`
	Detected  bool     `json:"detected" doc:"The project's files suggest it; it is not configured."`
}

type BuildList struct {
	Builds []BuildTarget `json:"builds"`
}

// A BuildResult is a build that has succeeded.
type BuildResult struct {
	Success    bool                `json:"success"`
	BuildID    string              `json:"build_id"`
	Name       string              `json:"name"`
	Command    []string            `json:"command"`
	DurationMS int64               `json:"duration_ms"`
	Warnings   []domain.Diagnostic `json:"warnings" doc:"What was said to be wrong; at most a thousand."`
}

// A BuildFailure is the data of the error of a build that has failed.
type BuildFailure struct {
	Kind        string              `json:"kind"`
	BuildID     string              `json:"build_id"`
	Name        string              `json:"name"`
	Command     []string            `json:"command"`
	DurationMS  int64               `json:"duration_ms"`
	ExitCode    int                 `json:"exit_code"`
	Signal      string              `json:"signal,omitempty"`
	TimedOut    bool                `json:"timed_out,omitempty"`
	Diagnostics []domain.Diagnostic `json:"diagnostics"`
	Output      string              `json:"output"` // the end of it
}

// A BuildProgress is what the notification of that name has.
type BuildProgress struct {
	BuildID   string   `json:"build_id"`
	Name      string   `json:"name"`
	Stage     string   `json:"stage"`
	Command   []string `json:"command,omitempty"`
	Directory string   `json:"directory,omitempty"`
	Output    string   `json:"output,omitempty"`
}

// A BuildWarning is what the notification of that name has.
type BuildWarning struct {
	BuildID string `json:"build_id"`
	Name    string `json:"name"`
	domain.Diagnostic
}
