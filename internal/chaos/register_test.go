//go:build linux && soak

package chaos

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// Kinds of calls to a question.
const (
	callDecide = "decide"
	callRead   = "read"
	callClose  = "close" // by the hub: no agent is left to ask
)

// Outcomes of a decision.
const (
	won     = "won"
	lost    = "lost"
	unknown = "unknown" // no response came
)

// A call is a client's request about a question, or the hub's end of the question.
type call struct {
	Approval string        `json:"approval"`
	Who      int           `json:"who"`
	What     string        `json:"what"`
	From     time.Duration `json:"from"`  // since the beginning of the round
	Until    time.Duration `json:"until"` // when the response came
	Write    answer        `json:"write,omitzero"`
	Outcome  string        `json:"outcome,omitempty"` // of a decision
	Read     answer        `json:"read,omitzero"`     // the received answer; only the status for a lost decision
}

// An answer is the content of a question. The zero value means no answer yet.
type answer struct {
	Status string `json:"status,omitempty"`
	Words  string `json:"words,omitempty"` // the comment
}

// forever is the end of a call without a response.
const forever = time.Duration(math.MaxInt64)

// statusPending is the status of an open question.
const statusPending = "pending"

// questionModel is a question as a write-once register. The first answer stays, and later calls
// receive it. A repeated question, after an answer with an unknown effect, is another register.
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

// linearize searches an order of the calls to one question that explains all responses. Without
// such an order it writes the best attempt to the file visualization, unless that is "".
func linearize(calls []call, visualization string) (porcupine.CheckResult, error) {
	return search(questionModel, calls, visualization)
}

// A span says who made a call, and when. The call took effect between From and Until, if it did.
type span struct {
	Who   int           `json:"who"`
	From  time.Duration `json:"from"`  // since the beginning of the round
	Until time.Duration `json:"until"` // when the response came
}

func (s span) spanned() span { return s }

func (c call) spanned() span { return span{c.Who, c.From, c.Until} }

// search searches an order of calls that a model explains. Without such an order it writes the best
// attempt to the file visualization, unless that is "".
func search[T interface{ spanned() span }](model porcupine.Model, calls []T, visualization string) (porcupine.CheckResult, error) {
	var history []porcupine.Operation
	for _, c := range calls {
		s := c.spanned()
		history = append(history, porcupine.Operation{ClientId: s.Who, Input: c, Call: int64(s.From), Return: int64(s.Until)})
	}
	result, info := porcupine.CheckOperationsVerbose(model, history, 20*time.Second)
	if result == porcupine.Ok || visualization == "" {
		return result, nil
	}
	return result, porcupine.VisualizePath(model, info, visualization)
}

// settle prepares the calls to a question for linearize, with the question's events from the
// complete log. A decision without a response took effect if the log has its comment, and otherwise
// never. The hub's own ends of the question are only in the log.
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

// The ids of the other clients. A person's number is a client id too.
const (
	hubClient = 0
	hurried   = 9
)

// A questionEvent is the end of a question in the log.
type questionEvent struct {
	byHuman     bool
	answer      answer
	from, until time.Duration // the question ended between these
}
