package acpagent

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
)

// readFile is what the hub asks for files of sessions that were begun with reads_files
// (docs/protocol.md, "Files").
const readFile = "file.read"

// readsFiles reports whether the agent behind is to see files as the client has them.
func (a *agent) readsFiles() bool {
	return !a.opts.SavedFiles && a.client.capabilities().FS.ReadTextFile
}

var errNotOurs = errors.New("the session is none of this client's")

// readFile reads a file as the client has it, for a turn that it has begun.
func (a *agent) readFile(ctx context.Context, params json.RawMessage) (any, error) {
	var p struct {
		SessionID string `json:"session_id"`
		Path      string `json:"path"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	s := a.ofRun(ctx, p.SessionID)
	if s == nil {
		return nil, errNotOurs
	}
	var file struct {
		Content string `json:"content"`
	}
	err := s.conn.Call(ctx, schema.ReadTextFile, map[string]string{"sessionId": s.id, "path": p.Path}, &file)
	return map[string]string{"text": file.Content}, err
}

// ofRun is the session in which the client has begun a turn, or nil. An agent may be
// quicker than the hub's answer to who has begun its turn, so turns that are being begun
// are waited for.
func (a *agent) ofRun(ctx context.Context, run string) *session {
	for _, beginning := range a.beginning() {
		select {
		case <-beginning:
		case <-ctx.Done():
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.sessions {
		if s.isOurs(run) {
			return s
		}
	}
	return nil
}

// beginning are the turns that the client has begun and the hub has not, each closed when
// it has.
func (a *agent) beginning() (list []<-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.sessions {
		s.mu.Lock()
		for _, t := range s.turns {
			list = append(list, t.begun)
		}
		s.mu.Unlock()
	}
	return list
}
