//go:build linux && soak

package chaos

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/anishathalye/porcupine"
)

// The files that an agent has changed, and their content before and after.
var reviewedFiles = []string{"reviewed-1", "reviewed-2", "reviewed-3"}

const (
	textBefore = "one\ntwo\nthree\n"
	textAfter  = "one\n2\nthree\n"
)

// Kinds of calls to a change: decisions, and reads.
const (
	changeAccept = "accept"
	changeRevert = "revert"
	changeReopen = "reopen"
	changeRead   = "read"
)

// The states of a change.
const (
	changeOpen     = "open"
	changeAccepted = "accepted"
	changeReverted = "reverted"
)

// A changeCall is a client's request about the change of a file.
type changeCall struct {
	span
	File    string `json:"file"`
	What    string `json:"what"`
	Outcome string `json:"outcome"`
	Read    string `json:"read,omitempty"` // the state in the response
}

// changeModel is the change of a file as a register. An accept leaves a reverted change reverted.
var changeModel = porcupine.Model{
	Init: func() any { return changeOpen },
	Step: func(state, input, _ any) (bool, any) {
		now, c := state.(string), input.(changeCall)
		switch {
		case c.What == changeAccept && now != changeReverted:
			now = changeAccepted
		case c.What == changeRevert:
			now = changeReverted
		case c.What == changeReopen:
			now = changeOpen
		}
		return c.Outcome == unknown || c.Read == now, now
	},
	DescribeOperation: func(input, _ any) string {
		c := input.(changeCall)
		return fmt.Sprintf("%s: %s %s", c.What, c.Outcome, c.Read)
	},
	DescribeState: func(state any) string { return state.(string) },
}

// reviews returns the calls to each file for changeModel. A decision without a response may have any
// effect, at any time.
func (e *evidence) reviews() map[string][]changeCall {
	m := make(map[string][]changeCall)
	for _, c := range e.Reviews {
		if c.Outcome == unknown {
			c.Until = forever
		}
		m[c.File] = append(m[c.File], c)
	}
	return m
}

// requireFile checks the content of a reviewed file after a decision with this state.
func (r *round) requireFile(name, state string) {
	want := textAfter
	if state == changeReverted {
		want = textBefore
	}
	content, err := os.ReadFile(filepath.Join(r.project.root, name))
	if err != nil || string(content) != want {
		r.found(checkFiles, "the change of %s is %s, and the file has %q (%v)", name, state, content, err)
	}
}
