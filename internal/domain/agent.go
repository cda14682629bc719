package domain

import "time"

// A ConfiguredAgent describes an agent to people and clients without starting it.
type ConfiguredAgent struct {
	Name      string `json:"name"`
	Title     string `json:"title"`
	Driver    string `json:"driver" doc:"acp, command or executor."`
	Default   bool   `json:"default" doc:"Used if a request names no agent."`
	Available bool   `json:"available" doc:"Duet has found the agent's program."`
	Path      string `json:"path,omitempty" doc:"The path of its program."`
	Install   string `json:"install,omitempty" doc:"How to install it, if it is not available."`
	CLI       string `json:"cli,omitempty" doc:"The path of the agent's own command line, if its adapter for the Agent Client Protocol is missing."`
	Host      string `json:"host,omitempty" doc:"The host on which the agent works: the daemon here does not start it, and session.start refuses it (agent_on_host)."`
	Source    string `json:"source" doc:"The configuration that defined it last: built-in, user or project."`
	Sandbox   string `json:"sandbox,omitempty" doc:"The configured sandbox: workspace or offline. Absent: none."`
	Trusted   bool   `json:"trusted" doc:"false: the agent is defined in a project's file that the user does not trust, so Duet does not start it."`
}

// An AgentStatus is the known state of an agent.
type AgentStatus struct {
	Version  string     `json:"version,omitempty" doc:"Version of its program or adapter. Absent: unknown without starting it."`
	SignedIn string     `json:"signed_in,omitempty" doc:"The last report: yes, no, not_needed or opens_sessions (see agent.check). answered: the agent has answered a prompt. unknown: call agent.check. Absent: the agent cannot be asked."`
	Account  string     `json:"account,omitempty" doc:"The account as the agent names it, or why there is none."`
	ToldAt   *time.Time `json:"signed_in_at,omitempty" doc:"Time of that report."`
	Hint     string     `json:"signed_in_hint,omitempty" doc:"If signed_in is not known: evidence that the user is signed in, for people."`
}

// An Agent is a configured agent with its status.
type Agent struct {
	ConfiguredAgent
	AgentStatus
}

// An AgentReport is an agent's information about itself.
type AgentReport struct {
	Agent    string         `json:"agent,omitempty" doc:"The program's own name."`
	Version  string         `json:"version,omitempty"`
	SignedIn string         `json:"signed_in" doc:"yes, no, not_needed, or opens_sessions: the agent opens sessions but does not report whether the user is signed in. Some agents check that only when they get a prompt."`
	Account  string         `json:"account,omitempty" doc:"The account as the agent names it, or why there is none."`
	Methods  []SignInMethod `json:"methods" doc:"The sign-in methods that it offers."`
	Logout   bool           `json:"logout" doc:"Whether the agent can sign out on request."`
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
	Type        string   `json:"type" doc:"agent: the agent does it itself, usually in a browser. terminal: a program in a terminal does it. env_var: variables of the agent's environment do it."`
	Variables   []string `json:"variables,omitempty" doc:"env_var: the required variables."`
	Missing     []string `json:"missing,omitempty" doc:"env_var: the variables that the agent does not have."`

	// Of type terminal: the command to run.
	Command     []string          `json:"command,omitempty" doc:"terminal: the command that duet-rpc agents login runs."`
	Environment map[string]string `json:"-"`
}

// Values of SignInMethod.Type and AuthMethod.Type, in the words of the Agent Client Protocol.
const (
	SignInByAgent    = "agent"    // the agent does it on request, usually in a browser
	SignInInTerminal = "terminal" // a program in a terminal does it
	SignInByVariable = "env_var"  // variables of the agent's environment do it
)
