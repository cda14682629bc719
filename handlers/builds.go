package handlers

import (
	"context"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/build"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/gate"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerBuilds registers the methods of the noun build.
func registerBuilds(reg *server.Registry, d Domain) {
	m := builds{d}
	const how = " Meanwhile the caller gets notifications: buildProgress {build_id, name, stage, ...}, whose stage is waiting (for another " +
		"build of that name), started (with command and directory), " +
		"output (with output, in whole lines), and finally succeeded or failed; and buildWarning, a diagnostic of any severity with build_id " +
		"and name. A failed build is the error -32053 with data.kind `build_failed`, whose data has the diagnostics and details. " +
		"$/cancelRequest or the end of the connection ends the build and all processes that it started."
	handle(reg, d, nativeFamily, "build.run", m.run, server.LongRunning(),
		server.Doc("Builds the project and waits for the end. The command is that of [[builds]] in the configuration, or one that the "+
			"project's files suggest."+how))
	handle(reg, d, nativeFamily, "build.list", m.list, server.Doc("Lists the builds of the project; build.run runs the first one by "+
		"default. build.run runs nothing in a project whose configuration waits for trust."))
}

type builds struct{ Domain }

func buildTargetOf(t build.Target) protocol.BuildTarget {
	return protocol.BuildTarget{
		Name: t.Name, Command: append([]string{}, t.Text()...), Directory: t.Directory, Backend: t.Backend, Detected: t.Detected,
	}
}

func (builds) list(ctx context.Context, h *hub.Hub, _ none) (protocol.BuildList, error) {
	targets, err := h.Builds().Targets(ctx)
	list := protocol.BuildList{Builds: []protocol.BuildTarget{}}
	for _, t := range targets {
		list.Builds = append(list.Builds, buildTargetOf(t))
	}
	return list, err
}

// run is build.run.
func (builds) run(ctx context.Context, h *hub.Hub, p protocol.RunBuildParams) (protocol.BuildResult, error) {
	result, err := h.Builds().Build(ctx, build.Request(p), buildListener{server.ConnFrom(ctx)})
	var failed *build.FailedError
	switch {
	case errors.As(err, &failed):
		return protocol.BuildResult{}, server.NewError(codeFailed, failed.Error(), failureOf(failed))
	case err != nil:
		return protocol.BuildResult{}, err
	}
	return protocol.BuildResult{
		Success: true, BuildID: result.ID, Name: result.Target.Name, Command: append([]string{}, result.Target.Text()...),
		DurationMS: result.Duration.Milliseconds(), Warnings: protocol.List(result.Diagnostics),
	}, nil
}

// outputInError limits the output in the error of a failed build, in bytes.
const outputInError = 16 << 10

func failureOf(f *build.FailedError) protocol.BuildFailure {
	output := f.Output.Text()
	if len(output) > outputInError {
		output = output[len(output)-outputInError:]
	}
	return protocol.BuildFailure{
		Kind: "build_failed", BuildID: f.ID, Name: f.Target.Name, Command: append([]string{}, f.Target.Text()...),
		DurationMS: f.Duration.Milliseconds(),
		ExitCode:   f.ExitCode, Signal: f.Signal, TimedOut: f.TimedOut, Diagnostics: protocol.List(f.Diagnostics), Output: output,
	}
}

// A buildListener reports the progress of a build to the calling client. The end of its connection
// ends the build.
type buildListener struct{ conn *server.Conn }

func (l buildListener) progress(ctx context.Context, p protocol.BuildProgress) {
	_ = l.conn.Notify(ctx, "buildProgress", p)
}

// Waits implements build.Listener.
func (l buildListener) Waits(ctx context.Context, id string, t build.Target) {
	l.progress(ctx, protocol.BuildProgress{BuildID: id, Name: t.Name, Stage: protocol.BuildWaiting})
}

// Started implements build.Listener.
func (l buildListener) Started(ctx context.Context, id string, t build.Target) {
	l.progress(ctx, protocol.BuildProgress{BuildID: id, Name: t.Name, Stage: domain.BuildStarted, Command: t.Text(), Directory: t.Directory})
}

// Printed implements build.Listener.
func (l buildListener) Printed(ctx context.Context, id string, t build.Target, text string) {
	l.progress(ctx, protocol.BuildProgress{BuildID: id, Name: t.Name, Stage: protocol.BuildOutput, Output: text})
}

// Found implements build.Listener.
func (l buildListener) Found(ctx context.Context, id string, t build.Target, d domain.Diagnostic) {
	_ = l.conn.Notify(ctx, "buildWarning", protocol.BuildWarning{BuildID: id, Name: t.Name, Diagnostic: d})
}

// Ended implements build.Listener.
func (l buildListener) Ended(ctx context.Context, id string, t build.Target, stage string) {
	l.progress(ctx, protocol.BuildProgress{BuildID: id, Name: t.Name, Stage: stage})
}

// registerGates registers the methods that list gates and turn one without a session.
func registerGates(reg *server.Registry, d Domain) {
	handle(reg, d, nativeFamily, "gate.list", listGates,
		server.Doc("Lists the configured gates ([[gates]]), whose names session.start accepts, and the names of those that wait for trust."))
	handle(reg, d, nativeFamily, "gate.check", checkGate, server.LongRunning(),
		server.Doc("Runs a gate in the project's directory and waits for its end, independently of agents. The notification gateProgress "+
			"{gate, output} sends its output to the caller, in whole lines. A gate that does not pass is a result. $/cancelRequest or the end of "+
			"the connection ends the gate and all processes that it started."))
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
		_ = conn.Notify(ctx, "gateProgress", protocol.GateProgress{Gate: p.Gate, Output: text}) // the end of the connection ends the gate
	})
	return protocol.GateResultOf(result), err
}

func gateSpec(g protocol.Gated) gate.Spec {
	return gate.Spec{Gates: g.Gates, MaxIterations: g.MaxIterations}
}

// gatesOf returns the state of a session's gates, or nil if it has none.
func gatesOf(ctx context.Context, h *hub.Hub, of domain.TurnInSession) (*protocol.Gates, error) {
	l, has, err := h.Gates().Of(ctx, of.Turn.ID)
	if err != nil || !has {
		return nil, err
	}
	g, err := gatesView(ctx, h, l)
	if err == nil {
		g.Results = protocol.GateResultsOf(l.Results)
	}
	return g, err
}

// allGates returns the states of the gates of a list's sessions, by turn, without the gates' output.
func allGates(ctx context.Context, h *hub.Hub, list []domain.TurnInSession) (map[int64]*protocol.Gates, error) {
	turns := make([]int64, 0, len(list))
	for _, s := range list {
		turns = append(turns, s.Turn.ID)
	}
	loops, err := h.Gates().OfAll(ctx, turns)
	if err != nil {
		return nil, err
	}
	views := make(map[int64]*protocol.Gates, len(loops))
	for turn, l := range loops {
		if views[turn], err = gatesView(ctx, h, l); err != nil {
			return nil, err
		}
	}
	return views, nil
}

func gatesView(ctx context.Context, h *hub.Hub, l domain.GateLoop) (*protocol.Gates, error) {
	g := &protocol.Gates{
		State: l.State, Reason: l.Reason, Iteration: l.Iteration, MaxIterations: l.MaxIterations, Gates: []string{}, Failing: []string{},
	}
	for _, one := range l.Gates {
		g.Gates = append(g.Gates, one.Name)
	}
	for _, r := range l.Failing() {
		g.Failing = append(g.Failing, r.Gate)
	}
	current, err := h.Query().ByTurn(ctx, l.Turn)
	g.Turn, g.TurnUUID = current.Turn.Name(), current.HumanLayerSession
	return g, err
}
