package domain

import "time"

// A Rule is what a human has decided for all questions like one.
type Rule struct {
	ID      int64
	Thread  int64  // 0: the whole project
	Effect  string // allow or deny
	Tool    string
	Command string // "" : any input
	Pattern bool   // Command is a pattern, not one command
	Path    string // a pattern of the files that it touches; "": any
	Created time.Time
}

// A RulePreview is what a rule would hold for that is made of a question.
type RulePreview struct {
	Tool    string
	Covers  string // one of the Covers constants
	Pattern string // of commands or of files, which can be given otherwise; "" where Covers is another
}

// Values of RulePreview.Covers.
const (
	CoversCommand = "command" // what the tool runs
	CoversFiles   = "files"   // that the tool touches
	CoversInput   = "input"   // the very input that is asked about
	CoversTool    = "tool"    // whatever the tool does
)
