package approval

import (
	"cmp"
	"fmt"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// resume continues the conversation of a question that was answered after its
// agent had gone. The agent asks again, and is given the answer then.
func (in *Inbox) resume(t store.Tx, a domain.Approval, restrict bool) error {
	asked, err := t.Run(in.ctx, a.Run)
	if err != nil {
		return err
	}
	request, err := in.request(t, asked)
	if err != nil {
		return err
	}
	return in.runs.Resume(t, asked, resumePrompt(a, request), restrict)
}

// request is the prompt that a run works for: its own, or where its agent went on by
// itself, the one before.
func (in *Inbox) request(t store.Tx, run domain.Run) (string, error) {
	for run.Source == domain.SourceAgent && run.Parent != 0 {
		var err error
		if run, err = t.Run(in.ctx, run.Parent); err != nil {
			return "", err
		}
	}
	return run.Prompt, nil
}

// maxPromptInput is how long an input may be that a prompt repeats, in bytes.
const maxPromptInput = 4096

// resumePrompt asks an agent to go on where it was interrupted. The agent's own
// session may have lost the turn, so it says what that was about.
func resumePrompt(a domain.Approval, request string) string {
	asked := fmt.Sprintf("you asked the user %q, and the user has answered.", cmp.Or(a.Title, a.Tool))
	if a.Type == domain.FunctionCall {
		asked = fmt.Sprintf("you asked for permission to run %s (%s), and the user has granted it.", a.Tool, cmp.Or(a.Title, a.Tool))
		switch n := len(a.Input); {
		case n > 0 && n < maxPromptInput:
			asked += " Its input was: " + string(a.Input) + "."
		case n == 0 && a.Details != "" && len(a.Details) < maxPromptInput:
			asked += fmt.Sprintf(" You described it as %q.", a.Details)
		}
	}
	next := "Ask the same question again to receive the answer."
	if a.Reopens != "" {
		next = "You were told to go on once before, and nobody knows whether you did it. Check first: if it is done, go on from there; if it is not, ask the same question again to receive the answer."
	}
	return domain.GoOnPrompt(fmt.Sprintf("Before you were interrupted, %s %s", asked, next), domain.RequestOf(request))
}
