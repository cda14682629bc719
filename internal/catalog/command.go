package catalog

// RunCommandParams are a command of the configuration to run to its end. Ours, from
// the hub to its executor alone.
type RunCommandParams struct {
	CommandID string            `json:"command_id" doc:"The caller's own id of this command; it must be new."`
	Command   []string          `json:"command" doc:"The program and its arguments."`
	CWD       string            `json:"cwd" doc:"The directory in which it runs."`
	Env       map[string]string `json:"env,omitempty" doc:"Its environment beyond what every child gets."`
	Mark      string            `json:"mark" doc:"The value of DUET_AGENT_MARK in its environment, which the hub has noted before."`
}

// RunCommandResult is how a command ended. Nothing of its process group is left then,
// and its output has been reported.
type RunCommandResult struct {
	ExitCode   int    `json:"exit_code" doc:"128 and the signal's number, if one ended it."`
	Signal     string `json:"signal,omitempty" doc:"The signal that ended it, such as SIGTERM."`
	StartError string `json:"start_error,omitempty" doc:"It was not started: why."`
}

// StopCommandParams name a command to end: SIGINT, SIGTERM and SIGKILL to its process
// group, with a while between them. Ours.
type StopCommandParams struct {
	CommandID string `json:"command_id"`
}

// StopCommandResult tells whether the end was begun; the result of run_command tells when
// it has come.
type StopCommandResult struct {
	Stopped bool `json:"stopped"`
}

// CommandStartedParams report that a command runs. Ours.
type CommandStartedParams struct {
	CommandID string `json:"command_id"`
	PID       int    `json:"pid" doc:"Of the process that leads its group."`
}

// CommandOutputParams report what a command printed, on its standard output or its
// standard error. Ours.
type CommandOutputParams struct {
	CommandID string `json:"command_id"`
	Data      string `json:"data"`
	Encoding  string `json:"encoding,omitempty" doc:"utf-8 (the default) or base64."`
}
