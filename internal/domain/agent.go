package domain

import "time"

// A ConfiguredAgent describes an agent to people and clients without starting it.
type ConfiguredAgent struct {
	Name      string `json:"name"`
	Title     string `json:"title"`
	Driver    string `json:"driver" doc:"acp, command or executor."`
	Default   bool   `json:"default" doc:"It is used where no agent is named."`
	Available bool   `json:"available" doc:"Its program was found."`
	Path      string `json:"path,omitempty" doc:"Where its program is."`
	Install   string `json:"install,omitempty" doc:"How to get it, where it is not available."`
	CLI       string `json:"cli,omitempty" doc:"Where the agent's own command line is, if its adapter for the Agent Client Protocol is missing."`
	Source    string `json:"source" doc:"Which configuration defined it last: built-in, user or project."`
	Trusted   bool   `json:"trusted" doc:"False: it is defined in a project's file that the user has not trusted, so it is not started."`
}

// An AgentStatus is the known state of an agent.
type AgentStatus struct {
	Version  string     `json:"version,omitempty" doc:"Of its program or its adapter; absent: not known without starting it."`
	SignedIn string     `json:"signed_in,omitempty" doc:"What it reported last: yes, no, not_needed or opens_sessions (see agent.check); answered: it has answered a prompt; unknown: agent.check asks it. Absent: it cannot be asked."`
	Account  string     `json:"account,omitempty" doc:"The account, in its words; or why there is none."`
	ToldAt   *time.Time `json:"signed_in_at,omitempty" doc:"When it reported that."`
	Hint     string     `json:"signed_in_hint,omitempty" doc:"Where that is not known: the evidence that the user is signed in, in words."`
}

// An Agent is a configured agent with its status.
type Agent struct {
	ConfiguredAgent
	AgentStatus
}

// An AgentReport is an agent's information about itself.
type AgentReport struct {
	Agent    string         `json:"agent,omitempty" doc:"The name that the program gives itself."`
	Version  string         `json:"version,omitempty"`
	SignedIn string         `json:"signed_in" doc:"yes, no, not_needed, or opens_sessions: it opens sessions and has not reported whether the user is signed in; some agents check that only at a prompt."`
	Account  string         `json:"account,omitempty" doc:"The account, in the agent's words; or why there is none."`
	Methods  []SignInMethod `json:"methods" doc:"The ways to sign in that it offers."`
	Logout   bool           `json:"logout" doc:"Whether it can sign out on request."`
}

// Values of AgentReport.SignedIn, and of AgentStatus.SignedIn.
const (
	SignedIn        = "yes"
	SignedOut       = "no"
	SignInNotNeeded = "not_needed"     // it offers no way to sign in, and works without
	OpensSessions   = "opens_sessions" // unknown; some agents check only when they get a prompt

	// SignInAnswered and SignInUnknown are of AgentStatus only. The agent has answered a prompt,
	// which usually needs a sign-in; or it has reported nothing since its login changed.
	SignInAnswered = "answered"
	SignInUnknown  = "unknown"
)

// A SignInMethod is a way to sign in that an agent offers.
type SignInMethod struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Type        string   `json:"type" doc:"agent: it does that itself, mostly in a browser; terminal: a program in a terminal does; env_var: variables of its environment do."`
	Variables   []string `json:"variables,omitempty" doc:"Of type env_var: those that are needed."`
	Missing     []string `json:"missing,omitempty" doc:"Of type env_var: those that the agent does not have."`

	// Of type terminal: the command to run.
	Command     []string          `json:"command,omitempty" doc:"Of type terminal: what duet-rpc agents login runs."`
	Environment map[string]string `json:"-"`
}

// Values of SignInMethod.Type and AuthMethod.Type, in the words of the Agent Client Protocol.
const (
	SignInByAgent    = "agent"    // the agent does it on request, usually in a browser
	SignInInTerminal = "terminal" // a program in a terminal does it
	SignInByVariable = "env_var"  // variables of the agent's environment do it
)
