package eventrow

import (
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/rowjson"
)

type iterationRow struct {
	Iteration     int      `json:"iteration"`
	MaxIterations int      `json:"max"`
	Gates         []string `json:"gates"`
}

type gateStartedRow struct {
	Gate      string `json:"gate"`
	Iteration int    `json:"iteration"`
}

type gateRow struct {
	rowjson.GateResult
	Iteration     int `json:"iteration"`
	MaxIterations int `json:"max"`
}

type loopEndedRow struct {
	State         string   `json:"state"`
	Reason        string   `json:"reason,omitempty"`
	Iteration     int      `json:"iteration"`
	MaxIterations int      `json:"max"`
	Failing       []string `json:"failing,omitempty"`
}

// The codecs of work that has gates.
var (
	iterationCodec = codecOf(
		func(p domain.IterationStarted) iterationRow {
			return iterationRow{p.Iteration, p.MaxIterations, p.Gates}
		},
		func(r iterationRow) domain.IterationStarted {
			return domain.IterationStarted{Iteration: r.Iteration, MaxIterations: r.MaxIterations, Gates: r.Gates}
		})
	gateStartedCodec = codecOf(
		func(p domain.GateStarted) gateStartedRow { return gateStartedRow(p) },
		func(r gateStartedRow) domain.GateStarted { return domain.GateStarted(r) })
	gateCodec = codecOf(
		func(p domain.GateChecked) gateRow {
			return gateRow{rowjson.GateResultOf(p.GateResult), p.Iteration, p.MaxIterations}
		},
		func(r gateRow) domain.GateChecked {
			return domain.GateChecked{GateResult: r.Value(), Iteration: r.Iteration, MaxIterations: r.MaxIterations}
		})
	loopEndedCodec = codecOf(
		func(p domain.LoopEnded) loopEndedRow {
			return loopEndedRow{p.State, p.Reason, p.Iteration, p.MaxIterations, p.Failing}
		},
		func(r loopEndedRow) domain.LoopEnded {
			return domain.LoopEnded{State: r.State, Reason: r.Reason, Iteration: r.Iteration, MaxIterations: r.MaxIterations, Failing: r.Failing}
		})
)
