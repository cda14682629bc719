package protocol

// A GateDefinition is a gate of the configuration, as clients see it.
type GateDefinition struct {
	Name      string   `json:"name"`
	Command   []string `json:"command" doc:"The program and its arguments."`
	Directory string   `json:"directory,omitempty" doc:"In which it runs, relative to where the agent works; absent: that."`
}

type GateList struct {
	Gates   []GateDefinition `json:"gates"`
	Waiting []string         `json:"waiting" doc:"Those of a project's file that its user does not trust yet: duet-rpc trust."`
}

type CheckGateParams struct {
	Gate string `json:"gate" doc:"The name of a gate of the configuration, or a line for the shell."`
}

// A GateProgress is what the notification of that name has.
type GateProgress struct {
	Gate   string `json:"gate"`
	Output string `json:"output"`
}

// A Gated is what asks for gates.
type Gated struct {
	Gates         []string `json:"gates,omitempty" doc:"Commands that have to succeed (\"Gates\"): names of [[gates]] of the configuration, or lines for the shell. They run where the agent works after each turn that completes; what fails is the next prompt of the conversation."`
	MaxIterations int      `json:"max_iterations,omitempty" doc:"With gates: how many turns there may be, 5 unless told, 100 at most."`
}

// A Gates is where the work on a task stands that has gates, as clients see it.
type Gates struct {
	State         string       `json:"state" doc:"working, checking (the gates run), passed, failed, or stopped: a turn failed or somebody ended it."`
	Reason        string       `json:"reason,omitempty" doc:"Why it failed or was stopped."`
	Iteration     int          `json:"iteration" doc:"Which turn it is, or was the last, from 1."`
	MaxIterations int          `json:"max_iterations"`
	Gates         []string     `json:"gates"`
	Failing       []string     `json:"failing" doc:"Those that did not pass when they were checked last."`
	Results       []GateResult `json:"results,omitempty" doc:"What came of each when they were checked last. Not in lists."`
	SessionID     string       `json:"session_id" doc:"The session of that turn."`
	TaskID        string       `json:"task_id" doc:"The same under its name as a task."`
}
