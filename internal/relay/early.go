package relay

import "github.com/duet-rpc/duet-rpc/frame"

// early answers a message for which no hub is needed, while there is none, and
// reports whether that is done. The goroutine that reads the editor calls it.
func (r *Relay) early(m *frame.Message) (done bool) {
	if r.opts.Early == nil {
		return false
	}
	shutdown := m.Kind == frame.Object && m.Method != nil && isShutdown(m)
	if m.Kind == frame.Object && m.Method != nil && string(text(m.Method)) == "initialize" {
		r.mu.Lock()
		r.noteTrust(m) // before a hub may come, which is told of it
		there := r.hub != nil || r.opening != nil
		r.mu.Unlock()
		if there { // one that does not answer now is to know, too
			return false
		}
	}
	if !r.noHub() {
		return false
	}
	answer, answered := r.opts.Early(m)
	if !answered {
		return false
	}
	if answer != nil && shutdown {
		var resp frame.Message
		frame.Parse(answer, &resp)
		shutdown = resp.Error == nil
	}
	if !r.await(r.ctx, func() bool { return r.replyBytes < maxReplyBytes }) {
		return true
	}
	r.mu.Lock()
	if answer != nil && !r.drain {
		r.answer(answer)
	}
	if shutdown {
		r.shutdown, r.drain = shutdownAgreed, true
	}
	r.mu.Unlock()
	if shutdown {
		r.endAnswered()
	}
	return true
}

// noHub reports whether there is no hub that answers, and nothing of the editor
// waits for one, before which nothing may be answered.
func (r *Relay) noHub() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return (r.hub == nil && r.opening == nil || r.silence != "") && len(r.waiting) == 0 && !r.drain
}
