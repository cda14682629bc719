package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/build"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/changereview"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/credential"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/gate"
	"github.com/duet-rpc/duet-rpc/internal/intake"
	"github.com/duet-rpc/duet-rpc/internal/preview"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/sessionsettings"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/terminal"
	"github.com/duet-rpc/duet-rpc/internal/trigger"
	"github.com/duet-rpc/duet-rpc/internal/usercommand"
)

// Intake returns the intake of agents' reports.
func (h *Hub) Intake() *intake.Intake { return h.intake }

func (h *Hub) newIntake() *intake.Intake {
	return intake.New(h.ctx, intake.Options{
		Store: h.store, Transcript: h.transcript, Turns: forIntake{h}, Answers: h.approvals,
		Budget: h.budget, Health: h.health, Keys: h.keys.Of, Root: h.rootOf, Logger: h.log,
	})
}

// ExecutorCalls answers calls of executors, and of clients with a session token.
func (h *Hub) ExecutorCalls() *ExecutorCalls { return h.calls }

// daemon implements the hub's side of the executor interface.
type daemon struct {
	ownTurns
	*ExecutorCalls
	*intake.Intake
	*credential.Keys
	*terminal.Registry
	*usercommand.Runner
}

// forIntake implements [intake.Turns].
type forIntake struct{ hub *Hub }

// TurnOf implements [intake.Turns].
func (f forIntake) TurnOf(ctx context.Context, token, task string) (int64, error) {
	known, err := f.hub.calls.TokenOf(ctx, token, task)
	return known.Turn, err
}

// GoesOn implements [intake.Turns]. The hub drops reports of a turn that was ended, and of one whose
// end waits for disk space, because the end needs the remaining space.
func (f forIntake) GoesOn(turn int64) bool {
	return f.hub.liveTurn(turn) != nil && !f.hub.cutShort.Has(turn)
}

// AgentStarted implements [intake.Turns].
func (f forIntake) AgentStarted(turn int64) {
	f.hub.configs.AgentStarted(turn)
}

func (f forIntake) Changed(t store.Tx, turn int64) { f.hub.query.Changed(t, turn) }

// Query returns the queries for sessions, turns and transcripts.
func (h *Hub) Query() *query.Queries { return h.query }

// Latest returns the time of [store.Store.Latest].
func (h *Hub) Latest() time.Time { return h.store.Latest() }

// Issues lists current problems and their remedies, without waiting. It is empty if the hub is
// healthy.
func (h *Hub) Issues() []string {
	issues := append(h.health.Issues(), h.checkpoints.issues()...)
	if at := h.opts.Project.Replaced(); !at.IsZero() {
		issues = append(issues, fmt.Sprintf("the project's directory is not the one from before %s, so rules, trust and answers from before do "+
			"not count; `duet-rpc projects keep` lets them count again", at.Local().Format("2006-01-02 15:04")))
	}
	return issues
}

// withAgent are the states of a turn that has an agent.
var withAgent = []domain.State{domain.Starting, domain.Running, domain.WaitingInput, domain.Interrupting}

// Status returns the hub's current activity.
func (h *Hub) Status(ctx context.Context) (Status, error) {
	s := Status{
		Started: h.started, MaxTurns: h.opts.Limits.MaxTurns, Executors: h.executors.Count(), Issues: h.Issues(),
		Database: h.store.Path(), LastSeq: h.events.Last(),
	}
	var err error
	if s.Counts, err = h.store.Counts(ctx); err != nil {
		return s, stored(err)
	}
	if s.Running, err = h.store.TurnsInSessions(ctx, domain.TurnFilter{States: withAgent, Limit: 100}); err != nil {
		return s, stored(err)
	}
	queued := domain.TurnFilter{States: []domain.State{domain.Queued}, Limit: 100}
	if s.Queued, err = h.store.TurnsInSessions(ctx, queued); err != nil {
		return s, stored(err)
	}
	slices.SortStableFunc(s.Queued, func(a, b domain.TurnInSession) int {
		if a.Priority != b.Priority {
			return b.Priority - a.Priority
		}
		return int(a.Turn.ID - b.Turn.ID)
	})
	pending, err := h.store.PendingApprovals(ctx, 0)
	s.Pending = len(pending)
	return s, stored(err)
}

// Beside returns the other sessions that work in the directory of a session: they
// may change the same files.
func (h *Hub) Beside(ctx context.Context, s domain.TurnInSession) ([]domain.TurnInSession, error) {
	working, err := h.query.Turns(ctx, domain.TurnFilter{States: withAgent})
	return slices.DeleteFunc(working, func(other domain.TurnInSession) bool {
		return other.Session.ID == s.Session.ID || other.Session.CWD != s.Session.CWD
	}), err
}

// Settings returns the settings of sessions and the options of their agents.
func (h *Hub) Settings() *sessionsettings.Settings { return h.settings }

func (h *Hub) newSettings() *sessionsettings.Settings {
	return sessionsettings.New(h.ctx, sessionsettings.Options{
		Store: h.store, Query: h.query, Turns: forSettings{h}, MayArchive: h.rests,
		Agents: h.configured, Questions: h.approvals, Logger: h.log,
	})
}

// forSettings implements [sessionsettings.Turns].
type forSettings struct{ hub *Hub }

// Write implements [sessionsettings.Turns].
func (f forSettings) Write(ctx context.Context, change func(store.Tx) error) error {
	return f.hub.write(ctx, change)
}

// LeaseOf implements [sessionsettings.Turns].
func (f forSettings) LeaseOf(session int64) catalog.Lease {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	for _, live := range f.hub.live {
		if live.turn.Session == session && live.lease != nil {
			return live.lease
		}
	}
	return nil
}

// Review returns the review of files that turns changed.
func (h *Hub) Review() *changereview.Review { return h.review }

func (h *Hub) newReview() *changereview.Review {
	return changereview.New(changereview.Options{
		Root: h.rootOf, StateDir: h.opts.StateDir, Store: h.store, Write: h.write,
	})
}

// Keys returns the API keys of agents.
func (h *Hub) Keys() *credential.Keys { return h.keys }

func (h *Hub) newKeys() *credential.Keys {
	return credential.NewKeys(credential.Options{
		Tokens: h.tokens, Turns: h.query, Events: publisher{h}, Configured: h.configured.KeysOf, Logger: h.log,
		Getenv: func(turn int64) func(string) string { return h.environments.of(turn).Lookup(h.opts.Getenv) },
		NoteAccess: func(ctx context.Context, turn int64, service, outcome string) error {
			return h.write(ctx, func(t store.Tx) error { return t.NoteKeyAccess(turn, service, outcome) })
		},
	})
}

func (h *Hub) newCommands(ctx context.Context) *usercommand.Runner {
	return usercommand.New(ctx, usercommand.Options{
		Acquire: func(ctx context.Context) (usercommand.Executor, error) {
			return h.executors.Acquire(ctx, catalog.LeaseRequest{Driver: "command"})
		},
		Write: h.write, Logger: h.log,
	})
}

// Builds returns the project's builds.
func (h *Hub) Builds() *build.Builds { return h.builds }

func (h *Hub) newBuilds() *build.Builds {
	configured := func() (build.Configured, error) {
		now, err := h.opts.Configuration.Current(false)
		if err != nil {
			return build.Configured{}, err
		}
		return build.Configured{Builds: now.Builds, Untrusted: len(now.Untrusted) > 0}, nil
	}
	return build.New(build.Options{
		Root: h.opts.Root, Getenv: h.opts.Getenv, Configured: configured, Run: h.commands.Run,
		Announce: h.announceBuild,
	})
}

// announceBuild adds a build event to the log before the client of the build gets it.
func (h *Hub) announceBuild(e domain.Event) {
	err := h.write(h.ctx, func(t store.Tx) error {
		_, err := t.Append(e)
		return err
	})
	if err != nil && h.ctx.Err() == nil {
		h.log.Warn("an event of a build could not be kept", "err", err)
	}
}

// Preview returns the preview of the project's pages and their console messages.
func (h *Hub) Preview() *preview.Preview { return h.preview }

func (h *Hub) newPreview() *preview.Preview {
	return preview.New(preview.Options{
		Root: h.opts.Root, Store: h.store, Write: h.write, Scope: h.query.Scope,
		Configured: func(ctx context.Context) (config.Preview, error) {
			now, err := h.opts.Configuration.Current(clientenv.IsRestricted(ctx))
			if err != nil {
				return config.Preview{}, err
			}
			return now.Preview, nil
		},
		Run: func(ctx context.Context, id string) (domain.TurnInSession, error) {
			if id != "" {
				return h.query.Turn(ctx, id)
			}
			s, err := h.query.Turn(ctx, domain.LastTurn)
			var e *domain.Error
			if errors.As(err, &e) && e.Kind == domain.KindTurnNotFound { // no agent has run yet
				return domain.TurnInSession{}, nil
			}
			return s, err
		},
		WithoutKeys: func(session int64, text string) string { return h.keys.Of(session).Text(text) },
	})
}

// Terminals returns the running terminals.
func (h *Hub) Terminals() *terminal.Registry { return h.terminals }

func (h *Hub) newTerminals(ctx context.Context) *terminal.Registry {
	return terminal.New(ctx, terminal.Options{
		Acquire: func(ctx context.Context) (terminal.Executor, error) {
			return h.executors.Acquire(ctx, catalog.LeaseRequest{Driver: "command"})
		},
		Directory: h.directory, Turns: h.query, Events: publisher{h}, Log: h.store, Secrets: h.keys, Logger: h.log,
	})
}

// Triggers returns the trigger engine.
func (h *Hub) Triggers() *trigger.Engine { return h.triggers }

// newTriggers returns the trigger engine. The store must be open.
func (h *Hub) newTriggers() *trigger.Engine {
	definitions := func() (trigger.Definitions, error) {
		now, err := h.opts.Configuration.Current(false)
		if err != nil {
			return trigger.Definitions{}, err
		}
		return trigger.Definitions{Triggers: now.Triggers, Automation: now.Automation}, nil
	}
	return trigger.New(h.ctx, trigger.Options{
		Store: h.store, Turns: forTriggers{h}, Questions: h.approvals, Log: h.events, Definitions: definitions,
		Changes: h.opts.Configuration, Root: h.opts.Root, StateDir: h.opts.StateDir, Logger: h.log,
	})
}

// forTriggers implements [trigger.Turns].
type forTriggers struct{ hub *Hub }

// Write implements [trigger.Turns].
func (f forTriggers) Write(ctx context.Context, change func(store.Tx) error) error {
	return f.hub.write(ctx, change)
}

// Begin implements [trigger.Turns].
func (f forTriggers) Begin(t store.Tx, b trigger.Begin) (domain.Turn, error) {
	h := f.hub
	agent, err := h.configured.AgentFor(false, b.Agent)
	if err != nil {
		return domain.Turn{}, err
	}
	metadata, err := json.Marshal(b.Metadata)
	if err != nil {
		return domain.Turn{}, err
	}
	spec := LaunchSpec{
		Prompt: b.Prompt, Title: b.Title, Agent: agent.Name, CWD: h.opts.Root, Source: domain.SourceTrigger,
		Priority: b.Priority, Draft: b.Draft, Metadata: metadata,
	}
	turn := newTurn(spec, agent.Name)
	session, err := h.newSession(t, spec, agent.Name)
	if err != nil {
		return turn, err
	}
	return turn, h.add(t, &turn, session, b.Draft)
}

// Submit implements [trigger.Turns].
func (f forTriggers) Submit(t store.Tx, turn *domain.Turn) error {
	return f.hub.launchDraft(f.hub.ctx, t, turn, ContinueSpec{})
}

// Discard implements [trigger.Turns].
func (f forTriggers) Discard(t store.Tx, turn *domain.Turn) error {
	return f.hub.transition(t, turn, domain.Discarded, outcome{reason: "not_wanted"})
}

// Gates returns the gate engine, which keeps agents working until commands pass.
func (h *Hub) Gates() *gate.Engine { return h.gates }

func (h *Hub) newGates() *gate.Engine {
	configured := func() (gate.Configured, error) {
		now, err := h.opts.Configuration.Current(false)
		if err != nil {
			return gate.Configured{}, err
		}
		return gate.Configured{Gates: now.Gates, Waiting: now.WaitingGates}, nil
	}
	return gate.New(h.ctx, gate.Options{
		Store: h.store, Turns: forGates{h}, Configured: configured, Run: h.commands.Run, AwaitRoom: h.health.AwaitRoom,
		Root: h.opts.Root, Getenv: h.opts.Getenv, Logger: h.log,
		Sandbox: func(ctx context.Context, of domain.Session) (*catalog.Sandbox, error) {
			box, err := h.sandboxOf(ctx, of.Settings, h.configured.Known(of.Agent), nil)
			if box != nil {
				box.Write = append(box.Write, h.rootOf(of.CWD))
			}
			return box, err
		},
	})
}

// forGates implements [gate.Turns].
type forGates struct{ hub *Hub }

// Write implements [gate.Turns].
func (f forGates) Write(ctx context.Context, change func(store.Tx) error) error {
	return f.hub.write(ctx, change)
}

// Next implements [gate.Turns].
func (f forGates) Next(t store.Tx, turn domain.Turn, prompt string) (domain.Turn, error) {
	h := f.hub
	session, err := t.Session(h.ctx, turn.Session)
	if err != nil {
		return domain.Turn{}, err
	}
	if _, err := h.configured.AgentFor(turn.Restricted, session.Agent); err != nil {
		return domain.Turn{}, err
	}
	last, err := t.LastTurn(h.ctx, turn.Session)
	if err != nil {
		return domain.Turn{}, err
	}
	next := following(session, turn, prompt, session.Agent)
	next.Source, next.Parent, next.Priority, next.Title = domain.SourceGate, last.ID, turn.Priority, turn.Title
	err = h.add(t, &next, session, false)
	if err == nil {
		h.environments.keep(t, next.ID, h.environments.of(turn.ID))
	}
	return next, err
}

// MayStart implements [gate.Turns].
func (f forGates) MayStart(store.Tx) { f.hub.mayStart = true }

// Say implements [gate.Turns].
func (f forGates) Say(t store.Tx, turn domain.Turn, text string) error {
	return f.hub.transcript.GatesChecked(t, turn, text)
}

// Environment implements [gate.Turns].
func (f forGates) Environment(turn int64) clientenv.Environment { return f.hub.environments.of(turn) }

// Resting implements [gate.Turns].
func (f forGates) Resting() bool { return f.hub.isClosing() }

// Rested implements [gate.Turns].
func (f forGates) Rested() {
	f.hub.environments.tidy(f.hub.gates.Checks)
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	f.hub.noteRest()
	f.hub.calmDown()
}
