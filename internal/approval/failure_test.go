package approval

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// stale has an agent ask p in a new session and end before a person answers.
func (h *harness) stale(t *testing.T, p catalog.RequestPermissionParams) (domain.Turn, domain.Approval) {
	t.Helper()
	turn := h.turn(t, domain.Running)
	asked, _ := h.ask(t, turn, p)
	require.NoError(t, h.Write(t.Context(), func(tx store.Tx) error { return h.KeepQuestions(tx, turn) }))
	return h.end(t, turn, domain.Interrupted), asked
}

// end sets the state of a turn.
func (h *harness) end(t *testing.T, turn domain.Turn, state domain.State) domain.Turn {
	t.Helper()
	turn.State = state
	require.NoError(t, h.Write(t.Context(), func(tx store.Tx) error { return tx.UpdateTurn(turn) }))
	return turn
}

// answer answers a question.
func (h *harness) answer(t *testing.T, asked domain.Approval, d Decision) {
	t.Helper()
	d.ID = asked.ID
	must(h.Decide(t.Context(), d))(t)
}

// carried is stale, plus an answer that waits until the agent asks again.
func (h *harness) carried(t *testing.T, d Decision) domain.Turn {
	t.Helper()
	turn, asked := h.stale(t, write("a"))
	h.answer(t, asked, d)
	return turn
}

// given adds a turn that got the answer to its question and has not taken it.
func (h *harness) given(t *testing.T) domain.Turn {
	t.Helper()
	turn := h.turn(t, domain.Running)
	asked, answered := h.ask(t, turn, write("a"))
	h.answer(t, asked, Decision{Decision: Approve})
	<-answered
	return turn
}

// reopened is given, plus the turn's end, after which the question is asked again.
func (h *harness) reopened(t *testing.T) domain.Turn {
	t.Helper()
	turn := h.end(t, h.given(t), domain.Failed)
	require.NoError(t, h.Write(t.Context(), func(tx store.Tx) error { return h.SettleAnswers(tx, turn, false) }))
	require.Len(t, h.pending(t, turn), 1)
	return turn
}

// A transaction fails as a whole when any call of the store, the turns or the transcript fails.
func TestNoErrorIsLost(t *testing.T) {
	deny, allow := config.Rule{Effect: config.EffectDeny, Tool: "*", Source: "user"}, config.Rule{Effect: config.EffectAllow, Tool: "*", Source: "user"}
	approve := Decision{Decision: Approve}
	url := &catalog.Elicitation{Mode: domain.ElicitURL, URL: "https://example.com"}
	// change is an action of one transaction; asks returns the action of asking p in a turn.
	type action func() error
	change := func(h *harness, t *testing.T, f func(store.Tx) error) action {
		return func() error { return h.Write(t.Context(), f) }
	}
	asks := func(h *harness, t *testing.T, turn domain.Turn, p catalog.RequestPermissionParams) action {
		return change(h, t, func(tx store.Tx) error {
			a := approvalOf(p)
			a.Turn = turn.ID
			_, err := h.answerOrAsk(tx, &a, make(chan resolution, 1))
			return err
		})
	}
	settles := func(h *harness, t *testing.T, turn domain.Turn, stopped bool) action {
		return change(h, t, func(tx store.Tx) error { return h.SettleAnswers(tx, turn, stopped) })
	}
	consults := func(h *harness, t *testing.T, session int64) action {
		h.place = Place{Session: domain.Session{ID: session, CWD: "/p"}, Turn: h.runIn(t, session, domain.Running)}
		return func() error {
			_, err := h.Consult(t.Context(), Inquiry{Spec: Spec{Type: domain.FunctionCall, Tool: "Write", Input: json.RawMessage(`{"file_path":"a"}`)}})
			return err
		}
	}
	creates := func(h *harness, t *testing.T) action {
		turn := h.turn(t, domain.Running)
		return func() error {
			_, err := h.Create(t.Context(), Spec{Turn: turn.UUID, Tool: "Write", Input: json.RawMessage(`{"file_path":"a"}`)})
			return err
		}
	}
	for name, prepare := range map[string]func(*testing.T, *harness) action{
		"create": func(t *testing.T, h *harness) action { return creates(h, t) },
		"create what a rule denies": func(t *testing.T, h *harness) action {
			h.setRules(deny)
			return creates(h, t)
		},
		"propose": func(t *testing.T, h *harness) action {
			turn := h.turn(t, domain.Draft)
			return change(h, t, func(tx store.Tx) error {
				return h.Propose(tx, &turn, domain.Approval{ID: "p", CallID: "p", Type: domain.HumanContact, Title: "Do it?", Status: domain.ApprovalPending})
			})
		},
		"ask": func(t *testing.T, h *harness) action { return asks(h, t, h.turn(t, domain.Running), write("a")) },
		"ask what a rule denies": func(t *testing.T, h *harness) action {
			h.setRules(deny)
			return asks(h, t, h.turn(t, domain.Running), write("a"))
		},
		"ask what was answered, and a rule allows": func(t *testing.T, h *harness) action {
			turn := h.carried(t, approve)
			h.setRules(allow)
			return asks(h, t, h.runIn(t, turn.Session, domain.Running), write("a"))
		},
		"ask what was asked before": func(t *testing.T, h *harness) action {
			turn, _ := h.stale(t, write("a"))
			return asks(h, t, h.runIn(t, turn.Session, domain.Running), write("a"))
		},
		"ask what was answered": func(t *testing.T, h *harness) action {
			return asks(h, t, h.runIn(t, h.carried(t, approve).Session, domain.Running), write("a"))
		},
		"ask what was answered with an input that the agent does not take": func(t *testing.T, h *harness) action {
			turn := h.carried(t, Decision{Decision: Approve, UpdatedInput: json.RawMessage(`{"file_path":"b"}`)})
			p := write("a")
			p.InputFixed = true
			return asks(h, t, h.runIn(t, turn.Session, domain.Running), p)
		},
		"ask what is asked again": func(t *testing.T, h *harness) action {
			return asks(h, t, h.runIn(t, h.reopened(t).Session, domain.Running), write("a"))
		},
		"ask what was asked again and left behind": func(t *testing.T, h *harness) action {
			turn := h.reopened(t)
			next := h.runIn(t, turn.Session, domain.Running)
			require.NoError(t, h.Write(t.Context(), func(tx store.Tx) error { return h.CloseOvertaken(tx, next) }))
			require.Empty(t, h.pending(t, turn))
			return asks(h, t, next, write("a"))
		},
		"check what was not asked": func(t *testing.T, h *harness) action {
			h.setRules(deny)
			turn := h.turn(t, domain.Running)
			p := write("a")
			p.Unasked = []string{"Write"}
			return func() error { return errorOf(h.CheckUnasked(t.Context(), turn.ID, p)) }
		},
		"consult when a person has answered": func(t *testing.T, h *harness) action {
			return consults(h, t, h.carried(t, approve).Session)
		},
		"approve": func(t *testing.T, h *harness) action {
			asked, _ := h.ask(t, h.turn(t, domain.Running), write("a"))
			return func() error { return errorOf(h.Decide(t.Context(), Decision{ID: asked.ID, Decision: Approve})) }
		},
		"deny, and tell the agent why": func(t *testing.T, h *harness) action {
			p := write("a")
			p.InputFixed = true
			asked, _ := h.ask(t, h.turn(t, domain.Running), p)
			return func() error {
				_, err := h.Decide(t.Context(), Decision{ID: asked.ID, Decision: Deny, Comment: "no", Tell: true})
				return err
			}
		},
		"approve what an agent asked that is gone": func(t *testing.T, h *harness) action {
			_, asked := h.stale(t, write("a"))
			return func() error { return errorOf(h.Decide(t.Context(), Decision{ID: asked.ID, Decision: Approve})) }
		},
		"forget a rule": func(t *testing.T, h *harness) action {
			asked, _ := h.ask(t, h.turn(t, domain.Running), write("a"))
			h.answer(t, asked, Decision{Decision: Approve, Scope: domain.ScopeSession})
			rules := must(h.Rules(t.Context()))(t)
			return func() error { return h.ForgetRule(t.Context(), rules[0].ID) }
		},
		"settle what no executor confirms": func(t *testing.T, h *harness) action {
			turn := h.end(t, h.given(t), domain.Completed)
			h.foreign = true
			return settles(h, t, turn, false)
		},
		"settle what the agent has not taken": func(t *testing.T, h *harness) action {
			return settles(h, t, h.end(t, h.given(t), domain.Completed), false)
		},
		"settle the answers of a run that was stopped": func(t *testing.T, h *harness) action {
			return settles(h, t, h.end(t, h.given(t), domain.Cancelled), true)
		},
		"settle the answers of a run that has failed": func(t *testing.T, h *harness) action {
			return settles(h, t, h.end(t, h.given(t), domain.Failed), false)
		},
		"settle what waited when the run was stopped": func(t *testing.T, h *harness) action {
			return settles(h, t, h.runIn(t, h.carried(t, approve).Session, domain.Cancelled), true)
		},
		"settle what waited when the run has failed": func(t *testing.T, h *harness) action {
			return settles(h, t, h.runIn(t, h.carried(t, approve).Session, domain.Failed), false)
		},
		"settle what waited when the session went on": func(t *testing.T, h *harness) action {
			return settles(h, t, h.runIn(t, h.carried(t, approve).Session, domain.Completed), false)
		},
		"settle what waited when the run was made for that": func(t *testing.T, h *harness) action {
			turn := h.runIn(t, h.carried(t, approve).Session, domain.Completed)
			turn.Source = domain.SourceDecision
			return settles(h, t, turn, false)
		},
		"settle what waited when the run asked something else": func(t *testing.T, h *harness) action {
			turn := h.runIn(t, h.carried(t, approve).Session, domain.Running)
			h.ask(t, turn, write("b"))
			turn.Source = domain.SourceDecision
			return settles(h, t, h.end(t, turn, domain.Completed), false)
		},
		"settle what waited when a client's question has ended": func(t *testing.T, h *harness) action {
			turn := h.runIn(t, h.carried(t, approve).Session, domain.Completed)
			turn.Source = domain.SourceQuestion
			return settles(h, t, turn, false)
		},
		"settle other questions after an answer": func(t *testing.T, h *harness) action {
			turn, _ := h.stale(t, write("b"))
			next := h.runIn(t, turn.Session, domain.Completed)
			next.Source = domain.SourceDecision
			return settles(h, t, next, false)
		},
		"cancel": func(t *testing.T, h *harness) action {
			turn := h.turn(t, domain.Running)
			h.ask(t, turn, write("a"))
			return change(h, t, func(tx store.Tx) error { return h.CancelQuestions(tx, turn) })
		},
		"keep": func(t *testing.T, h *harness) action {
			turn := h.turn(t, domain.Running)
			h.ask(t, turn, write("a"))
			return change(h, t, func(tx store.Tx) error { return h.KeepQuestions(tx, turn) })
		},
		"close as the agent changes": func(t *testing.T, h *harness) action {
			turn, _ := h.stale(t, write("a"))
			return change(h, t, func(tx store.Tx) error { return h.CloseStale(tx, turn.Session) })
		},
		"reconsider": func(t *testing.T, h *harness) action {
			turn := h.turn(t, domain.Running)
			h.ask(t, turn, write("a"))
			h.setRules(deny)
			return change(h, t, func(tx store.Tx) error { return h.Reconsider(tx, turn.Session) })
		},
		"reconsider all": func(t *testing.T, h *harness) action {
			h.ask(t, h.turn(t, domain.Running), write("a"))
			h.setRules(deny)
			return func() error { return h.ReconsiderAll(t.Context()) }
		},
		"note what was taken": func(t *testing.T, h *harness) action {
			turn := h.given(t)
			return change(h, t, func(tx store.Tx) error { return h.Taken(tx, turn.ID, []string{"x"}) })
		},
		"note what is done": func(t *testing.T, h *harness) action {
			turn := h.turn(t, domain.Running)
			asked, _ := h.ask(t, turn, catalog.RequestPermissionParams{Title: "Sign in", ToolUseID: "e", Elicitation: url})
			return change(h, t, func(tx store.Tx) error { return h.Done(tx, turn, asked.ID) })
		},
		"give up an answer that comes too late": func(t *testing.T, h *harness) action {
			turn := h.carried(t, approve)
			h.later = 2 * answerKept
			place := Place{Session: domain.Session{ID: turn.Session}, Turn: h.runIn(t, turn.Session, domain.Running)}
			return change(h, t, func(tx store.Tx) error {
				q := Inquiry{Spec: Spec{Type: domain.FunctionCall, Tool: "Write", Input: json.RawMessage(`{"file_path":"a"}`)}}
				a := q.approval()
				a.Session, a.Turn = turn.Session, place.Turn.ID
				known, err := h.knownAnswer(t.Context(), tx, q, &a, place)
				require.False(t, known)
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			act := prepare(t, h)
			calls := 0
			for {
				h.failAt(calls + 1)
				err := act()
				if !h.hasFailed() {
					require.NoError(t, err)
					break
				}
				calls++
				require.ErrorIs(t, err, errBroken, "call %d", calls)
			}
			require.Positive(t, calls)
		})
	}
}
