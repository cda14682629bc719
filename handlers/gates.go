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

func listGates(ctx context.Context, h *hub.Hub, _ none) (protocol.GateList, error) {
	configured, err := h.Gates().List(ctx)
	list := protocol.GateList{Gates: []protocol.GateDefinition{}, Waiting: append([]string{}, configured.Waiting...)}
	for _, g := range configured.Gates {
		list.Gates = append(list.Gates, protocol.GateDefinition{Name: g.Name, Command: append([]string{}, g.Text()...), Directory: g.Directory})
	}
	return list, err
}

func checkGate(ctx context.Context, h *hub.Hub, p protocol.CheckGateParams) (protocol.GateResult, error) {
	conn := server.ConnFrom(ctx)
	result, err := h.Gates().CheckNow(ctx, p.Gate, func(ctx context.Context, text string) {
		_ = conn.Notify(ctx, "gateProgress", protocol.GateProgress{Gate: p.Gate, Output: text}) // a connection that has broken ends the gate
	})
	return protocol.GateResultOf(result), err
}

func gateSpec(g protocol.Gated) gate.Spec {
	return gate.Spec{Gates: g.Gates, MaxIterations: g.MaxIterations}
}

// gatesOf is where the work of a session stands if it has gates, or nil.
func gatesOf(ctx context.Context, h *hub.Hub, of domain.Session) (*protocol.Gates, error) {
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
func allGates(ctx context.Context, h *hub.Hub, list []domain.Session) (map[int64]*protocol.Gates, error) {
	runs := make([]int64, 0, len(list))
	for _, s := range list {
		runs = append(runs, s.Run.ID)
	}
	loops, err := h.Gates().OfAll(ctx, runs)
	if err != nil {
		return nil, err
	}
	views := make(map[int64]*protocol.Gates, len(loops))
	for run, l := range loops {
		if views[run], err = gatesView(ctx, h, l); err != nil {
			return nil, err
		}
	}
	return views, nil
}

func gatesView(ctx context.Context, h *hub.Hub, l domain.GateLoop) (*protocol.Gates, error) {
	g := &protocol.Gates{State: l.State, Reason: l.Reason, Iteration: l.Iteration, MaxIterations: l.MaxIterations, Gates: []string{}, Failing: []string{}}
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
func gatesAtMost(g *protocol.Gates) int {
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
