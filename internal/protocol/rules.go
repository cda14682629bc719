package protocol

import (
	"strconv"
	"time"

	"github.com/duet-rpc/duet-rpc/server"
)

type RuleList struct {
	Rules []*Rule `json:"rules"`
}

// A Rule is a decision that holds for all questions like one.
type Rule struct {
	RuleID    int64     `json:"rule_id"`
	Effect    string    `json:"effect" doc:"allow or deny."`
	ToolName  string    `json:"tool_name"`
	Command   string    `json:"command,omitempty" doc:"Only for this command; absent: for any input."`
	Pattern   bool      `json:"pattern,omitempty" doc:"The command is a pattern, as in the configuration."`
	Path      string    `json:"path,omitempty" doc:"Only for these files: a pattern, in which * stands for no slash."`
	SameInput bool      `json:"same_input,omitempty" doc:"Only for the very input that was asked about."`
	Scope     string    `json:"scope" doc:"session or project."`
	ThreadID  string    `json:"thread_id,omitempty" doc:"The conversation, if the scope is session."`
	Title     string    `json:"title,omitempty" doc:"Of that conversation."`
	CreatedAt time.Time `json:"created_at"`
}

func (r *Rule) Texts() []*string { return []*string{&r.Command, &r.Path, &r.Title} }

type DeleteRuleParams struct {
	RuleID int64 `json:"rule_id" doc:"The rule, as getRules lists it."`
}

func (p DeleteRuleParams) Check() error {
	if p.RuleID > 0 {
		return nil
	}
	return server.InvalidParam(server.ParamError{Param: "rule_id", Expected: "the id of a rule, as getRules lists it", Received: strconv.FormatInt(p.RuleID, 10)})
}

type DeleteRuleResult struct {
	Success bool `json:"success" doc:"true"`
}
