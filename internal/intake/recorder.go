package intake

import (
	"bytes"
	"context"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/store"
)

// A recorder keeps reports, and says where what is wrong with that has to be
// known. Its methods are for the store's writer.
type recorder struct {
	ctx   context.Context // ends with the hub
	opts  Options
	runs  *runs
	write func(store.Tx, report) error // record, but in tests

	background background
}

func newRecorder(ctx context.Context, opts Options, runs *runs) *recorder {
	w := &recorder{ctx: ctx, opts: opts, runs: runs}
	w.write = w.record
	return w
}

// recordAll keeps reports. One that makes no sense is logged and left out, and its
// run will not have completed; it takes no other with it.
func (w *recorder) recordAll(t store.Tx, reports []report) error {
	for _, r := range joinLate(reports) {
		if r.between == nil && !w.opts.Runs.GoesOn(r.run) {
			continue
		}
		if err := w.write(t, r); err != nil {
			if store.IsFull(err) {
				return err
			}
			w.opts.Logger.Warn("a report of an agent was not taken", "kind", r.kind, "err", err)
			if run := w.runs.get(r.run); run != nil {
				run.refusals.addKind(r.kind, err)
			}
		}
	}
	return nil
}

// joinLate joins pieces of late text that follow each other: each changes a whole message.
func joinLate(reports []report) []report {
	joined := make([]report, 0, len(reports))
	for _, r := range reports {
		if n := len(joined) - 1; n >= 0 && r.isLateText() && joined[n].isLateText() && *joined[n].between == *r.between &&
			joined[n].continuedBy(r) && bytes.Equal(joined[n].delta.Meta, r.delta.Meta) {
			joined[n].delta.Delta.Text += r.delta.Delta.Text
			continue
		}
		joined = append(joined, r)
	}
	return joined
}

// errNotKept is why reports were refused that could not be kept; the log says
// why.
var errNotKept = errors.New("they could not be kept")

// notRecorded notes, before the end of a run is kept in the same transaction
// perhaps, that reports were not taken. An error of nil is a panic, which the
// writer tells of.
func (w *recorder) notRecorded(reports []report, err error) {
	if store.IsFull(err) {
		return // their runs are ended for that
	}
	for i := range reports {
		if run := w.runs.get(reports[i].run); run != nil {
			run.refusals.add(errNotKept)
		}
	}
}

// reportsLost is told that a transaction with reports failed.
func (w *recorder) reportsLost(err error) {
	if store.IsFull(err) {
		w.opts.Health.NoRoom(err)
		return
	}
	w.opts.Logger.Error("events of agents could not be kept", "err", err)
	w.opts.Health.ReportsLost(err)
}

// delayed is told that a transaction could not begin.
func (w *recorder) delayed(err error) {
	w.opts.Logger.Error("events of agents cannot be kept yet", "err", err)
	if store.IsFull(err) {
		w.opts.Health.NoRoom(err)
	}
}
