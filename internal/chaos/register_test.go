//go:build linux && soak

package chaos

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// What a call to a question was.
const (
	callDecide = "decide"
	callRead   = "read"
	callClose  = "close" // by the hub: no agent is left to ask
)

// How a decision ended.
const (
	won     = "won"
	lost    = "lost"
	unknown = "unknown" // no reply came
)

// A call is something that was asked of a question, or that the hub did to it.
type call struct {
	Approval string        `json:"approval"`
	Who      int           `json:"who"`
	What     string        `json:"what"`
	From     time.Duration `json:"from"`  // since the beginning of the round
	Until    time.Duration `json:"until"` // when the reply came
	Write    answer        `json:"write,omitzero"`
	Outcome  string        `json:"outcome,omitempty"` // of a decision
	Read     answer        `json:"read,omitzero"`     // what was there, of a decision that lost only the status
}

// An answer is what a question holds. The zero value: none yet.
type answer struct {
	Status string `json:"status,omitempty"`
	Words  string `json:"words,omitempty"` // the comment
}

// forever is when a call returns whose reply never came.
const forever = time.Duration(math.MaxInt64)

// statusPending is the status of a question that waits.
const statusPending = "pending"

// questionModel is a question as a register that is written once: the first
// answer stays, and later calls receive it. What is asked again, since it is not
// known whether the answer was carried out, is another question.
var questionModel = porcupine.Model{
	Init: func() any { return answer{} },
	Step: func(state, input, _ any) (bool, any) {
		now, c := state.(answer), input.(call)
		switch c.What {
		case callRead:
			if c.Read.Status == statusPending {
				return now == answer{}, now
			}
			return now == c.Read, now
		case callDecide:
			if c.Outcome == won {
				return now == answer{}, c.Write
			}
			return now.Status != "" && now.Status == c.Read.Status, now
		case callClose:
			return now == answer{}, c.Write
		}
		return false, now
	},
	DescribeOperation: func(input, _ any) string {
		c := input.(call)
		switch c.What {
		case callRead:
			return "read: " + c.Read.String()
		case callDecide:
			if c.Outcome == lost {
				return fmt.Sprintf("%s: was %s already", c.Write, c.Read.Status)
			}
			return c.Write.String()
		case callClose:
			return "closed: " + c.Write.String()
		}
		return c.What
	},
	DescribeState: func(state any) string { return state.(answer).String() },
}

func (a answer) String() string {
	switch {
	case a == answer{}:
		return statusPending
	case a.Words == "":
		return a.Status
	}
	return a.Status + " (" + a.Words + ")"
}

// linearize looks for an order of the calls to one question that explains what
// each received. With visualization, the path of a file for it, the best attempt
// is shown there.
func linearize(calls []call, visualization string) (porcupine.CheckResult, error) {
	var history []porcupine.Operation
	for _, c := range calls {
		history = append(history, porcupine.Operation{ClientId: c.Who, Input: c, Call: int64(c.From), Return: int64(c.Until)})
	}
	result, info := porcupine.CheckOperationsVerbose(questionModel, history, 20*time.Second)
	if result == porcupine.Ok || visualization == "" {
		return result, nil
	}
	return result, porcupine.VisualizePath(questionModel, info, visualization)
}

// settle makes of the calls to a question and of its events in the log, which
// is complete by now, what linearize can judge: a decision without a reply was
// taken if the log has its words, and never was if not; what the hub did itself is
// in the log alone.
func settle(calls []call, events []questionEvent) []call {
	var settled []call
	written := make(map[string]bool) // words that the log has
	for _, e := range events {
		if e.byHuman {
			written[e.answer.Words] = true
		}
	}
	for _, c := range calls {
		if c.What == callDecide && c.Outcome == unknown {
			if !written[c.Write.Words] {
				continue
			}
			c.Outcome, c.Until = won, forever
		}
		settled = append(settled, c)
	}
	for _, e := range events {
		if !e.byHuman {
			settled = append(settled, call{What: callClose, Who: hubClient, From: e.from, Until: e.until, Write: e.answer})
		}
	}
	return settled
}

// Who is who among those who call, beside the people.
const (
	hubClient = 0
	hurried   = 9
)

// A questionEvent is an event of the log: a question has an answer.
type questionEvent struct {
	byHuman     bool
	answer      answer
	from, until time.Duration // it became true between these
}
