package relay

import (
	"bytes"
	"errors"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

// readEditor relays what the editor sends until it sends no more: nil, or the
// error of a transport that failed.
func (r *Relay) readEditor() error {
	var to *link // where the last message went
	reader := frame.NewReader(r.editor.t, frame.LSP, r.opts.Limits)
	reader.Released = r.opts.Released
	reader.BeforeRead = func() {
		if to != nil {
			_ = to.flush() // its reader sees what became of it
		}
	}
	var m frame.Message
	for {
		err := reader.Next(&m)
		var refusal *frame.Refusal
		switch {
		case err == nil:
			if r.opts.Trace != nil {
				r.opts.Trace(false, m.Body)
			}
			if !r.early(&m) {
				to = r.fromEditor(&m)
			}
		case errors.As(err, &refusal):
			r.refuse(refusal)
		case errors.Is(err, frame.ErrTimeout):
			r.opts.Logger.Warn("a frame did not arrive whole in time; what came of it was dropped", "timeout", reader.Limits().Timeout)
		default:
			if to != nil {
				_ = to.flush()
			}
			if server.IsGone(err) || r.ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// refuse answers a frame that cannot be relayed, as package server does. Another
// goroutine writes the answer: an editor that sends all it has before it reads
// must not be waited for here, unless it sends nothing else.
func (r *Relay) refuse(refusal *frame.Refusal) {
	r.opts.Logger.Warn("frame refused", "reason", refusal.Reason, "detail", refusal.Detail)
	answer := frame.ErrorBody(refusal.ID, refusal.Wire())
	if !r.await(r.ctx, func() bool { return r.replyBytes < maxReplyBytes }) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shutdown != noShutdown || r.drain {
		return
	}
	r.answer(answer)
}

// fromEditor sends a message to the hub, or lets it wait for one. It returns
// the link that is to be flushed, or nil.
func (r *Relay) fromEditor(m *frame.Message) *link {
	for {
		r.mu.Lock()
		switch {
		case r.drain:
			r.mu.Unlock()
			return nil
		case r.hub != nil && r.silence == "" && !r.flushing:
			hub := r.hub
			pass := r.register(m)
			r.mu.Unlock()
			if pass {
				hub.send(m.Body)
			}
			return hub
		case len(r.waiting) == 0 || len(r.waiting) < maxWaiting && r.bytes+len(m.Body) <= maxWaitingBytes:
			r.waiting = append(r.waiting, waiting{bytes.Clone(m.Body), time.Now().Add(r.opts.Patience)})
			r.bytes += len(m.Body)
			if m.Kind == frame.Object && isShutdown(m) { // what waits has as long as at any other end
				r.hurry(time.Now().Add(r.opts.Grace))
			}
			if r.hub != nil && r.silence == "" && !r.flushing {
				r.startFlush(r.hub)
			}
			r.changed()
			r.mu.Unlock()
			return nil
		}
		change := r.change
		r.mu.Unlock()
		select {
		case <-change:
		case <-r.ctx.Done():
			return nil
		}
	}
}
