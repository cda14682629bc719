package approval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// approvalOf is what an executor asks, as a row.
func approvalOf(p catalog.RequestPermissionParams) domain.Approval {
	input := p.ToolInput
	if input == nil {
		input = p.ToolParams
	}
	done := callIdentity(input, p.ToolUseID)
	a := domain.Approval{
		ID: uuid.NewString(), Type: domain.FunctionCall, CallID: p.ToolUseID, ParentID: p.ParentID, Tool: p.ToolName, Input: input, Title: p.Title,
		ToolKind: p.ToolKind, Paths: p.Paths, Status: domain.ApprovalPending, Question: inputHash(p.ToolName, done), InputFixed: p.InputFixed, NameByKind: p.NameByKind, Plan: p.Plan, Details: p.Details,
	}
	switch {
	case p.Elicitation != nil:
		a.Elicitation = domain.Elicitation(*p.Elicitation)
		a.Type, a.Question = domain.HumanContact, elicitationIdentity(a)
	case p.IsQuestion:
		a.Type = domain.HumanContact
		a.Question = inputHash(p.ToolName+"\x00"+p.Title, input)
	case toolinput.IsEmpty(input): // then it is known by what was shown of it
		a.Question = inputHash(p.ToolName+"\x00"+p.Title, asJSON(struct {
			Paths   []string
			Diffs   []catalog.FileDiff
			Details string `json:",omitempty"`
		}{p.Paths, p.Diffs, p.Details}))
	default: // an agent's input may name the file alone
		if beyond := diffsBeyondInput(p.Diffs, input); len(beyond) > 0 {
			a.Question = inputHash(p.ToolName+"\x00"+inputHash("", done), asJSON(beyond))
		}
	}
	for _, d := range p.Diffs {
		a.Diffs = append(a.Diffs, domain.Diff(d))
	}
	for _, o := range p.Options {
		a.Options = append(a.Options, domain.Option{ID: o.OptionID, Name: o.Name, Kind: domain.OptionKind(o.Kind)})
	}
	a.CallID = cmp.Or(a.CallID, a.ID)
	return a
}

// diffsBeyondInput are diffs as far as they say what the input of their tool does not. A
// text that the input has, too, is written whatever the file held before: that
// may have changed when the question is asked again, for another conversation
// wrote to the file meanwhile. A diff may be a hunk, whose lines are some of the input's, and there
// is none where the file has the text already.
func diffsBeyondInput(diffs []catalog.FileDiff, input json.RawMessage) []catalog.FileDiff {
	var said []string
	for decoder := json.NewDecoder(bytes.NewReader(input)); ; {
		token, err := decoder.Token()
		if err != nil {
			break
		}
		if text, ok := token.(string); ok && text != "" {
			said = append(said, text)
		}
	}
	var beyond []catalog.FileDiff
	for _, d := range diffs {
		if d.NewText != "" && slices.ContainsFunc(said, func(text string) bool { return hasLines(text, d.NewText) }) {
			if slices.Contains(said, d.Path) {
				continue
			}
			d.OldText, d.NewText = nil, ""
		}
		beyond = append(beyond, d)
	}
	return beyond
}

// hasLines reports whether lines stand in a text, whole and one after the other.
func hasLines(text, lines string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], lines)
		if i < 0 {
			return false
		}
		begin, end := from+i, from+i+len(lines)
		if (begin == 0 || text[begin-1] == '\n') && (end == len(text) || text[end-1] == '\n') {
			return true
		}
		next := strings.IndexByte(text[begin:], '\n')
		if next < 0 {
			return false
		}
		from = begin + next + 1
	}
}

// Presented is the title of a question as people are to be shown it, and why
// programs may read the tool's input differently, "" if they do not. The title
// says so too: each client shows it, and perhaps but one way to read the input.
func Presented(a domain.Approval) (ambiguity, title string) {
	if a.Type != domain.FunctionCall {
		return "", a.Title
	}
	if ambiguity = toolinput.Read(a.Input).Ambiguity; ambiguity == "" {
		return "", a.Title
	}
	return ambiguity, "[programs may read this input differently: " + ambiguity + "] " + cmp.Or(a.Title, a.Tool)
}
