package handlers

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/gate"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerGates registers what people ask of gates apart from any work.
func registerGates(reg *server.Registry, d Domain) {
	handle(reg, d, sessionFamily, "listGates", listGates,
		server.Doc("Lists the gates of the configuration ([[gates]]), which launchSession takes by their names, and the names of those that wait for trust."))
	handle(reg, d, sessionFamily, "checkGate", checkGate, server.LongRunning(),
		server.Doc("Runs a gate in the project's directory and waits for its end, whatever agents do meanwhile. The notification gateProgress {gate, output} tells the caller what it prints, in whole lines. "+
			"One that does not pass is a result. $/cancelRequest, and the end of the connection, end the gate with everything that it has started."))
}

// A gateDefinition is a gate of the configuration, as clients see it.
type gateDefinition struct {
	Name      string   `json:"name"`
	Command   []string `json:"command" doc:"The program and its arguments."`
	Directory string   `json:"directory,omitempty" doc:"In which it runs, relative to where the agent works; absent: that."`
}

type gateList struct {
	Gates   []gateDefinition `json:"gates"`
	Waiting []string         `json:"waiting" doc:"Those of a project's file that its user does not trust yet: duet-rpc trust."`
}

func listGates(ctx context.Context, h *hub.Hub, _ none) (gateList, error) {
	configured, err := h.Gates().List(ctx)
	list := gateList{[]gateDefinition{}, append([]string{}, configured.Waiting...)}
	for _, g := range configured.Gates {
		list.Gates = append(list.Gates, gateDefinition{g.Name, append([]string{}, g.Text()...), g.Directory})
	}
	return list, err
}

type checkGateParams struct {
	Gate string `json:"gate" doc:"The name of a gate of the configuration, or a line for the shell."`
}

// A gateProgress is what the notification of that name has.
type gateProgress struct {
	Gate   string `json:"gate"`
	Output string `json:"output"`
}

func checkGate(ctx context.Context, h *hub.Hub, p checkGateParams) (protocol.GateResult, error) {
	conn := server.ConnFrom(ctx)
	result, err := h.Gates().CheckNow(ctx, p.Gate, func(ctx context.Context, text string) {
		_ = conn.Notify(ctx, "gateProgress", gateProgress{p.Gate, text}) // a connection that has broken ends the gate
	})
	return protocol.GateResultOf(result), err
}

// A gated is what asks for gates.
type gated struct {
	Gates         []string `json:"gates,omitempty" doc:"Commands that have to succeed (\"Gates\"): names of [[gates]] of the configuration, or lines for the shell. They run where the agent works after each turn that completes; what fails is the next prompt of the conversation."`
	MaxIterations int      `json:"max_iterations,omitempty" doc:"With gates: how many turns there may be, 5 unless told, 100 at most."`
}

func (g gated) spec() gate.Spec { return gate.Spec{Gates: g.Gates, MaxIterations: g.MaxIterations} }

// A gates is where the work on a task stands that has gates, as clients see it.
type gates struct {
	State         string                `json:"state" doc:"working, checking (the gates run), passed, failed, or stopped: a turn failed or somebody ended it."`
	Reason        string                `json:"reason,omitempty" doc:"Why it failed or was stopped."`
	Iteration     int                   `json:"iteration" doc:"Which turn it is, or was the last, from 1."`
	MaxIterations int                   `json:"max_iterations"`
	Gates         []string              `json:"gates"`
	Failing       []string              `json:"failing" doc:"Those that did not pass when they were checked last."`
	Results       []protocol.GateResult `json:"results,omitempty" doc:"What came of each when they were checked last. Not in lists."`
	SessionID     string                `json:"session_id" doc:"The session of that turn."`
	TaskID        string                `json:"task_id" doc:"The same under its name as a task."`
}

// gatesOf is where the work of a session stands if it has gates, or nil.
func gatesOf(ctx context.Context, h *hub.Hub, of domain.Session) (*gates, error) {
	l, has, err := h.Gates().Of(ctx, of.Run.ID)
	if err != nil || !has {
		return nil, err
	}
	g, err := gatesView(ctx, h, l)
	if err == nil {
		g.Results = protocol.GateResultsOf(l.Results)
	}
	return g, err
}

// allGates are the same of those sessions of a list that have gates, by run, in short.
func allGates(ctx context.Context, h *hub.Hub, list []domain.Session) (map[int64]*gates, error) {
	runs := make([]int64, 0, len(list))
	for _, s := range list {
		runs = append(runs, s.Run.ID)
	}
	loops, err := h.Gates().OfAll(ctx, runs)
	if err != nil {
		return nil, err
	}
	views := make(map[int64]*gates, len(loops))
	for run, l := range loops {
		if views[run], err = gatesView(ctx, h, l); err != nil {
			return nil, err
		}
	}
	return views, nil
}

func gatesView(ctx context.Context, h *hub.Hub, l domain.GateLoop) (*gates, error) {
	g := &gates{State: l.State, Reason: l.Reason, Iteration: l.Iteration, MaxIterations: l.MaxIterations, Gates: []string{}, Failing: []string{}}
	for _, one := range l.Gates {
		g.Gates = append(g.Gates, one.Name)
	}
	for _, r := range l.Failing() {
		g.Failing = append(g.Failing, r.Gate)
	}
	current, err := h.Query().ByRun(ctx, l.Run)
	g.SessionID, g.TaskID = current.SessionID, domain.TaskName(current.Task)
	return g, err
}

// gatesAtMost is how long that can be as JSON.
func gatesAtMost(g *gates) int {
	if g == nil {
		return 0
	}
	total := 500 + textAtMost(&g.Reason)
	for _, list := range [][]string{g.Gates, g.Failing} {
		for _, name := range list {
			total += textAtMost(&name)
		}
	}
	for _, r := range g.Results {
		total += 300 + textAtMost(&r.Gate, &r.Reason, &r.Output)
		for _, f := range r.Findings {
			total += 200 + textAtMost(&f.File, &f.Message, &f.Source)
		}
	}
	return total
}
