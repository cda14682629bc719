package protocol

import "encoding/json"

// AskedIn says where something is asked.
type AskedIn struct {
	Thread string `json:"thread,omitempty" doc:"A session that works, by any id: the question is its own, and it waits too. Another name is that of a conversation of questions, which is made where there is none; absent: the project's."`
	CWD    string `json:"cwd,omitempty" doc:"The directory that paths and rules are read in, where the question is not a session's; absent: the project's root."`
	Keep   bool   `json:"keep,omitempty" doc:"The question stays open when the connection ends, or the hub: who asks the same again in the same thread gets the answer, for an hour. Has no effect on a question of a session."`
}

type AskUserParams struct {
	Message string          `json:"message" doc:"What to ask."`
	Subject string          `json:"subject,omitempty" doc:"What it is about, in a few words."`
	Options json.RawMessage `json:"options,omitempty" doc:"Answers to choose from: strings, or {option_id,name,kind}. Absent: any words will do."`
	AskedIn
}

type AskUserResult struct {
	Response   string `json:"response" doc:"The answer in words: what was written, or the name of the option."`
	Option     string `json:"option,omitempty" doc:"The option_id of the option that was chosen."`
	ApprovalID string `json:"approval_id" doc:"The question, as getApproval has it."`
}

type RequestPermissionParams struct {
	ToolName  string          `json:"tool_name" doc:"The tool."`
	ToolInput json.RawMessage `json:"tool_input,omitempty" doc:"Its input."`
	ToolUseID string          `json:"tool_use_id,omitempty" doc:"The caller's own id of the tool call."`
	AskedIn
}

func (p RequestPermissionParams) Check() error { return NotEmpty("tool_name", p.ToolName) }

type RequestPermissionResult struct {
	Approved     bool            `json:"approved" doc:"true"`
	Reason       string          `json:"reason,omitempty" doc:"user_approved, or the rule=… or mode=… that has answered."`
	Comment      string          `json:"comment,omitempty" doc:"What the human said with it."`
	UpdatedInput json.RawMessage `json:"updated_input,omitempty" doc:"The tool is to run with this input instead."`
	ApprovalID   string          `json:"approval_id,omitempty" doc:"The question, as getApproval has it, where a human was asked."`
}

type CancelTaskResult struct {
	Cancelled bool `json:"cancelled" doc:"The task was cancelled, or its end has begun. False: it has ended before."`
}
