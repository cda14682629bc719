package relay

import "context"

// answer queues an answer of our own for writeReplies; r.mu is held.
func (r *Relay) answer(body []byte) {
	r.replies = append(r.replies, body)
	r.replyBytes += len(body)
	r.changed()
}

// endAnswered ends the relay when the editor has its answers, or will not take
// them.
func (r *Relay) endAnswered() {
	ctx, cancel := context.WithTimeout(r.ctx, r.opts.Grace)
	defer cancel()
	r.await(ctx, func() bool { return r.replyBytes == 0 })
	r.end(nil)
}

// writeReplies sends the editor the answers that are our own.
func (r *Relay) writeReplies() {
	for r.await(r.ctx, func() bool { return len(r.replies) > 0 }) {
		r.mu.Lock()
		answers := r.replies
		r.replies = nil
		r.mu.Unlock()
		for _, answer := range answers {
			r.editor.send(answer)
		}
		_ = r.editor.flush()
		r.mu.Lock()
		for _, answer := range answers {
			r.replyBytes -= len(answer)
		}
		r.changed()
		r.mu.Unlock()
	}
}
