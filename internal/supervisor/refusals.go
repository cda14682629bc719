package supervisor

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// refusals are for a Daemon that wants to know of reports which were
// lost before it could tell whose they were.
type refusals interface {
	ReportRefused(task string, why error)
}

// refused tells that something which the process had to say of a task was not
// taken; of "", or one that is not its own, it is not known which of its tasks
// was meant, so each is told of.
func (p *process) refused(task string, why error) {
	hub, ok := p.supervisor.opts.Daemon.(refusals)
	if !ok {
		return
	}
	for _, task := range p.inventory.tasksMeant(task) {
		hub.ReportRefused(task, why)
	}
}

// unserved is told of what came from the process and was no message, or had
// other parameters than it should. What the hub itself refuses it knows.
func (p *process) unserved(method string, err error) {
	var refusal *frame.Refusal
	var wrong *jsonrpc2.Error
	var byHub refusedByHub
	switch {
	case errors.As(err, &byHub):
		return
	case errors.As(err, &refusal), errors.Is(err, frame.ErrTimeout):
	case strings.HasPrefix(method, "report_") && errors.As(err, &wrong):
	default:
		return
	}
	p.refused("", err)
}

// refuse makes an error of the hub fit for the wire, and sees to it that the
// run is known whose executor has another token than its own: the hub takes
// nobody's word for that.
func (d daemon) refuse(task, method string, err error) error {
	if err == nil {
		return nil
	}
	var known *domain.Error
	if errors.As(err, &known) && known.Kind == domain.KindInvalidToken {
		d.process.refused(task, fmt.Errorf("%s: %w", method, err))
	}
	return refusedByHub{d.wire(err)}
}

// refusedByHub is an error of the hub: what came was served.
type refusedByHub struct{ error }

func (e refusedByHub) Unwrap() error { return e.error }
