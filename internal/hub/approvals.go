package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Approvals returns the inbox of open approvals and their decisions.
func (h *Hub) Approvals() *approval.Inbox { return h.approvals }

// newInbox returns the hub's inbox. The store must be open.
func (h *Hub) newInbox() *approval.Inbox {
	policy := approval.NewPolicy(h.opts.Root, h.opts.Configuration.Rules)
	policy.Worktree = h.projectIn
	return approval.New(h.ctx, approval.Options{
		Store: h.store, Policy: policy, Turns: turnsOfHub{h}, Transcript: h.transcript, Logger: h.log,
		Since: h.opts.Project.Replaced,
	})
}

// turnsOfHub gives the inbox access to turns.
type turnsOfHub struct{ hub *Hub }

func (r turnsOfHub) Write(ctx context.Context, change func(store.Tx) error) error {
	return r.hub.write(ctx, change)
}

func (r turnsOfHub) Find(ctx context.Context, reader store.Reader, id string) (domain.Turn, error) {
	return query.Find(ctx, reader, id)
}

func (r turnsOfHub) AwaitInput(t store.Tx, turn *domain.Turn) error {
	return r.hub.transition(t, turn, domain.WaitingInput, outcome{reason: "approval"})
}

func (r turnsOfHub) GoOn(t store.Tx, turn *domain.Turn) error {
	if turn.IsQuestion() {
		return r.hub.transition(t, turn, domain.Completed, outcome{reason: "approval"})
	}
	return r.hub.transition(t, turn, domain.Running, outcome{reason: "approval"})
}

func (r turnsOfHub) Resume(t store.Tx, interrupted domain.Turn, prompt string, restrict bool) error {
	if interrupted.IsQuestion() { // the caller gets the answer when it asks again
		return nil
	}
	last, err := t.LastTurn(r.hub.ctx, interrupted.Session)
	if err != nil || !last.State.Ended() {
		return err
	}
	_, err = r.goOn(t, interrupted, last, domain.SourceDecision, prompt, restrict)
	return err
}

func (r turnsOfHub) Tell(t store.Tx, in domain.Turn, prompt string, restrict bool) (domain.Turn, error) {
	last, err := t.LastTurn(r.hub.ctx, in.Session)
	if err != nil {
		return domain.Turn{}, err
	}
	return r.goOn(t, last, last, domain.SourceSession, prompt, restrict)
}

// goOn adds a turn after the last turn of a session, with the permissions of from.
func (r turnsOfHub) goOn(
	t store.Tx, from, last domain.Turn, source, prompt string, restrict bool,
) (domain.Turn, error) {
	session, err := t.Session(r.hub.ctx, from.Session)
	if err != nil {
		return domain.Turn{}, err
	}
	turn := following(session, from, prompt, session.Agent)
	turn.Source, turn.Parent = source, last.ID
	if restrict || from.Restricted {
		if _, err := r.hub.configured.AgentFor(true, session.Agent); err != nil {
			return domain.Turn{}, err
		}
		turn.Restricted = true
	}
	err = r.hub.add(t, &turn, session, false)
	return turn, err
}

func (r turnsOfHub) ConfirmsAnswers(turn domain.Turn) bool {
	return r.hub.configured.ConfirmsAnswers(turn.Agent)
}

func (r turnsOfHub) AgentEnded(turn int64) <-chan struct{} {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	if live := r.hub.live[turn]; live != nil {
		return live.ended
	}
	return nil
}

func (r turnsOfHub) KeepsQuestions(turn int64) bool { return r.hub.cutShort.Has(turn) }

// questionsSession is the alias of the session for clients that name none.
const questionsSession = "duet:questions"

// questionGone is the reason for ending the turn of a question whose client has gone.
const questionGone = "the client that asked this has gone"

// PlaceOf finds the active turn, or the session for standalone questions. BeginQuestion creates
// a session that does not exist yet.
func (r turnsOfHub) PlaceOf(ctx context.Context, t store.Tx, q approval.Inquiry) (approval.Place, error) {
	h := r.hub
	cwd, err := h.directory(q.CWD)
	if err != nil {
		return approval.Place{}, err
	}
	none := approval.Place{Session: domain.Session{CWD: cwd, Mode: catalog.ModeDefault}}
	name := cmp.Or(q.Turn, questionsSession)
	id, err := t.FindID(h.ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		if domain.IsReserved(name) {
			return approval.Place{}, query.NoTurn(name)
		}
		return none, nil
	}
	if err != nil {
		return approval.Place{}, err
	}
	turn, err := t.Turn(h.ctx, id)
	switch {
	case err != nil:
		return approval.Place{}, err
	case turn.IsQuestion():
		none.Session, err = t.Session(h.ctx, turn.Session)
		return none, err
	case turn.State.Ended() || turn.State == domain.Interrupting || turn.State == domain.Draft ||
		turn.State == domain.Queued:
		return approval.Place{}, domain.Errorf(domain.KindBadState,
			"%s is %s: nothing can be asked in it; name a session that works, or none", turn.Label(),
			turn.State.Words())
	}
	session, err := t.Session(h.ctx, turn.Session)
	return approval.Place{Session: session, Turn: turn}, err
}

// BeginQuestion creates a turn that consists of one question. The turn has no agent, holds no slot,
// and ends with its answer.
func (r turnsOfHub) BeginQuestion(ctx context.Context, t store.Tx, in *approval.Place, q approval.Inquiry) error {
	h := r.hub
	if in.Session.ID == 0 {
		in.Session.UUID, in.Session.Title = uuid.Must(uuid.NewV7()).String(), "Questions"
		if name := askerName(q.Turn); name != "" {
			in.Session.Title += " of " + name
		}
		in.Session.Created, in.Session.Active = t.Now(), t.Now()
		if err := h.addSession(t, &in.Session, cmp.Or(q.Turn, questionsSession)); err != nil {
			return err
		}
	}
	text := cmp.Or(q.Title, q.Tool+" "+string(q.Input))
	spec := LaunchSpec{
		Prompt: strings.TrimSpace(text), Title: questionTitle(cmp.Or(q.Subject, text)), Source: domain.SourceQuestion,
		Mode: in.Session.Mode,
	}
	if q.Keep != nil {
		spec.Source = domain.SourceKeptQuestion
	}
	if q.CallID != "" {
		spec.Metadata, _ = json.Marshal(map[string]string{"tool_use_id": q.CallID}) // strings
	}
	turn := newTurn(spec, askerName(q.Turn))
	clientenv.Carry(ctx, &turn)
	turn.Session, turn.State, turn.Created, turn.Started, turn.Active = in.Session.ID, domain.New, t.Now(), t.Now(), t.Now()
	if err := t.InsertTurn(&turn); err != nil {
		return err
	}
	in.Turn = turn
	return h.transition(t, &in.Turn, domain.Running, outcome{})
}

// askerName returns the name that lists show for the client of a question: the session's alias
// without its kind prefix. It returns "" if the alias is the id of a turn.
func askerName(alias string) string {
	if _, err := uuid.Parse(alias); err == nil || domain.IsReserved(alias) {
		return ""
	}
	return strings.TrimPrefix(alias, "mcp:")
}

// EndQuestion ends the turn of a question whose client has gone.
func (r turnsOfHub) EndQuestion(t store.Tx, turn *domain.Turn, kept bool) error {
	return r.hub.transition(t, turn, domain.Interrupted,
		outcome{reason: "caller_gone", message: questionGone, leaveApprovals: kept})
}

// questionTitle returns the beginning of a text as one line.
func questionTitle(text string) string {
	const most = 80
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) > most {
		text = fmt.Sprintf("%s…", string([]rune(text)[:most-1]))
	}
	return text
}
