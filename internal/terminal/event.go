package terminal

import (
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Deliver receives the events of a terminal: output and its end.
type Deliver func(domain.Event)

// deliver sends an event to views.
func deliver(views []*View, e domain.Event) {
	for _, v := range views {
		v.deliver(e)
	}
}

// outputEvent returns an event with output; run is zero if unknown.
func outputEvent(p catalog.TerminalOutputParams, run domain.Session) domain.Event {
	return event(run, domain.TerminalPrinted(p))
}

func exitEvent(p catalog.TerminalExitParams, run domain.Session) domain.Event {
	return event(run, domain.TerminalExited(p))
}

func event(run domain.Session, p domain.Payload) domain.Event {
	return domain.Event{Time: time.Now(), Run: run.Run.ID, Thread: run.Run.Thread, Ref: run.Ref(), Payload: p}
}
