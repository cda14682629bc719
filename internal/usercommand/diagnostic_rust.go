package usercommand

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// The two relevant lines of rustc: the message, then the place.
var (
	rustWhat  = lazyregexp.New(`^(error|warning|note|help)(\[[A-Za-z]\d+\])?: (.+)$`)
	rustWhere = lazyregexp.New(`^\s*--> (.+):(\d+):(\d+)$`)
)

func (p *parser) rustText(line string) (d diagnostic, ok bool) {
	if m := rustWhat().FindStringSubmatch(line); m != nil {
		p.rust = &diagnostic{Severity: severities[m[1]], Message: m[3], Source: "rust"}
		if m[2] != "" {
			p.rust.Message = m[2][1:len(m[2])-1] + ": " + m[3]
		}
		return d, false
	}
	m := rustWhere().FindStringSubmatch(line)
	if m == nil || p.rust == nil {
		return d, false
	}
	d, p.rust = *p.rust, nil
	d.File, d.Line, d.Column = m[1], number(m[2]), number(m[3])
	return d, true
}

// rustMessage is a line of cargo --message-format=json, or of rustc --error-format=json.
type rustMessage struct {
	Reason  string       `json:"reason"`
	Message *rustProblem `json:"message"`
}

type rustProblem struct {
	Message string `json:"message"`
	Level   string `json:"level"`
	Code    *struct {
		Code string `json:"code"`
	} `json:"code"`
	Spans []struct {
		File    string `json:"file_name"`
		Line    int    `json:"line_start"`
		Column  int    `json:"column_start"`
		Primary bool   `json:"is_primary"`
	} `json:"spans"`
}

// rustJSON returns the diagnostics of such a line.
func (p *parser) rustJSON(line string) []diagnostic {
	var m rustMessage
	if json.Unmarshal([]byte(line), &m) != nil || m.Reason != "compiler-message" || m.Message == nil {
		return nil
	}
	problem := *m.Message
	for _, span := range problem.Spans {
		if !span.Primary {
			continue
		}
		d := diagnostic{File: span.File, Line: max(span.Line, 0), Column: max(span.Column, 0), Severity: severities[problem.Level], Message: problem.Message, Source: "rust"}
		if d.Severity == "" {
			d.Severity = DiagnosticError
		}
		if problem.Code != nil && problem.Code.Code != "" {
			d.Message = problem.Code.Code + ": " + d.Message
		}
		return []diagnostic{d}
	}
	return nil
}
