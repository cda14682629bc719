package handlers

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerGates registers what people ask of gates apart from any work.
func registerGates(reg *server.Registry, d Domain) {
	handle(reg, d, dialect.Session, "listGates", listGates,
		server.Doc("Lists the gates of the configuration ([[gates]]), which launchSession takes by their names, and the names of those that wait for trust."))
	handle(reg, d, dialect.Session, "checkGate", checkGate, server.LongRunning(),
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

func checkGate(ctx context.Context, h *hub.Hub, p checkGateParams) (dialect.GateResult, error) {
	conn := server.ConnFrom(ctx)
	result, err := h.Gates().CheckNow(ctx, p.Gate, func(ctx context.Context, text string) {
		_ = conn.Notify(ctx, "gateProgress", gateProgress{p.Gate, text}) // a connection that has broken ends the gate
	})
	return dialect.GateResultOf(result), err
}
