package executor_test

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// terminalRecord records the output and the ends of terminals, in place of a hub.
type terminalRecord struct {
	testkit.Witness
	// OnOutput, if set, is called first for each output, without the lock.
	OnOutput func(catalog.TerminalOutputParams)

	output map[string]string
	exits  []catalog.TerminalExitParams
}

// TerminalOutput records output.
func (w *terminalRecord) TerminalOutput(_ context.Context, p catalog.TerminalOutputParams) error {
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

// TerminalExit records an end.
func (w *terminalRecord) TerminalExit(_ context.Context, p catalog.TerminalExitParams) error {
	w.Note(func() { w.exits = append(w.exits, p) })
	return nil
}

// Printed returns the output of a terminal, each report after its encoding and a colon.
func (w *terminalRecord) Printed(id string) string {
	w.Lock()
	defer w.Unlock()
	return w.output[id]
}

// Exit returns the end of a terminal, or nil while it runs.
func (w *terminalRecord) Exit(id string) *catalog.TerminalExitParams {
	for _, exit := range w.Exits() {
		if exit.TerminalID == id {
			return &exit
		}
	}
	return nil
}

// Exits returns all recorded ends.
func (w *terminalRecord) Exits() []catalog.TerminalExitParams {
	w.Lock()
	defer w.Unlock()
	return append([]catalog.TerminalExitParams(nil), w.exits...)
}
