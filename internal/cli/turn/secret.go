package turn

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

const (
	// keyWithin is how long somebody has to type a key: a little less than the hub waits.
	keyWithin = 24 * time.Second
	// leaveToOthers is how long other clients have to give a key where nobody can be asked here.
	leaveToOthers = 2 * time.Second
)

// giveKey asks whoever sits at the terminal for the key of a service that the agent
// needs, unseen, and passes it on; nothing here keeps it. Where there is no terminal the
// key is left to other clients for a moment.
func (a *asker) giveKey(ctx context.Context, d wire.EventData, running *sync.WaitGroup) {
	provide := func(key string) error {
		return a.hub.Call(ctx, "secret.provide", map[string]string{"request_id": d.RequestID, "service": d.Service, "secret": key}, nil)
	}
	if a.terminal == nil || a.interrupts {
		running.Go(func() {
			select {
			case <-time.After(leaveToOthers):
				_ = provide("") // another client may have answered
			case <-ctx.Done():
			}
		})
		return
	}
	service := term.Line(d.Service)
	a.view.Note("the agent needs the key of " + service + ", which is passed on and kept nowhere; `duet-rpc config --defaults` shows how [keys." + service + "] finds it")
	key, interrupted := a.unseen(ctx, "Key of "+service+" (it is not shown; Return for none): ")
	if interrupted {
		// Nothing is answered: a refusal could end the turn as failed before the interrupt gets there.
		var sig os.Signal = os.Interrupt
		if a.isToEnd {
			sig = syscall.SIGTERM
		}
		a.interrupts = false // interrupt takes a second one for "at once"
		a.interrupt(sig)
		return
	}
	if err := provide(key); err != nil && key != "" {
		a.view.Note("the key came too late, or another client has given one")
	}
}

// unseen asks for a line that the terminal does not show. It is empty where nobody types
// one in time.
func (a *asker) unseen(ctx context.Context, question string) (line string, interrupted bool) {
	ctx, cancel := context.WithTimeout(ctx, keyWithin)
	defer cancel()
	a.lines()
	defer term.HideInput(a.terminal)()
	before := a.interrupts
	line, err := a.line(ctx, question, false)
	if err != nil {
		a.view.endLine()
	}
	return line, a.interrupts && !before
}
