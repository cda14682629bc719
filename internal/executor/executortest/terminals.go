// Package executortest has helpers for the tests of the executor and its packages.
package executortest

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// Terminals is told what terminals print, and of their ends, as a hub is.
type Terminals struct {
	testkit.Witness
	// OnOutput, if set, is called first with what is printed, without the lock.
	OnOutput func(catalog.TerminalOutputParams)

	output map[string]string
	exits  []catalog.TerminalExitParams
}

// TerminalOutput notes what was printed.
func (w *Terminals) TerminalOutput(_ context.Context, p catalog.TerminalOutputParams) error {
	if w.OnOutput != nil {
		w.OnOutput(p)
	}
	w.Note(func() {
		if w.output == nil {
			w.output = make(map[string]string)
		}
		w.output[p.TerminalID] += p.Encoding + ":" + p.Data
	})
	return nil
}

// TerminalExit notes an end.
func (w *Terminals) TerminalExit(_ context.Context, p catalog.TerminalExitParams) error {
	w.Note(func() { w.exits = append(w.exits, p) })
	return nil
}

// Printed is what a terminal printed, each report behind its encoding and a colon.
func (w *Terminals) Printed(id string) string {
	w.Lock()
	defer w.Unlock()
	return w.output[id]
}

// Exit is how a terminal ended; nil while it has not.
func (w *Terminals) Exit(id string) *catalog.TerminalExitParams {
	for _, exit := range w.Exits() {
		if exit.TerminalID == id {
			return &exit
		}
	}
	return nil
}

// Exits are the ends that there were.
func (w *Terminals) Exits() []catalog.TerminalExitParams {
	w.Lock()
	defer w.Unlock()
	return append([]catalog.TerminalExitParams(nil), w.exits...)
}
