package aiwg

// RuleParams name a rule.
type RuleParams struct {
	RuleID string `json:"ruleId,omitempty" doc:"One trigger. Absent: all as a whole."`
}

// A Switched is the result of automation.enable and automation.disable.
type Switched struct {
	Enabled bool   `json:"enabled" doc:"The state of the trigger, or of all as a whole."`
	Success bool   `json:"success" doc:"false: the trigger does not exist."`
	RuleID  string `json:"ruleId,omitempty"`
}
