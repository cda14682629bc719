package handlers

import (
	"context"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/server"
)

// readFile is what a connection is asked that has offered the files of its sessions
// (docs/protocol.md, "Files").
const readFile = "file.read"

// sessionsRead is of how many sessions of a connection the files are read there: the
// last ones that it has begun.
const sessionsRead = 64

// editorFiles are the offers of connections.
type editorFiles struct {
	readers *Readers // nil: none are taken

	mu    sync.Mutex // guards tasks
	tasks map[*server.Conn][]string
}

// starting holds back who reads files until done is called, if a session is about to be
// begun whose files will be offered.
func (f *editorFiles) starting(reads bool) (done func()) {
	if !reads || f.readers == nil {
		return func() {}
	}
	return f.readers.Starting()
}

// offer has the files of a session read by the connection that has begun it, as long as
// that lasts.
func (f *editorFiles) offer(ctx context.Context, s domain.Session) {
	conn := server.ConnFrom(ctx)
	if f.readers == nil || conn == nil {
		return
	}
	f.readers.Offer(s.UUID, func(ctx context.Context, path string) (string, error) {
		var file struct {
			Text string `json:"text"`
		}
		err := conn.Call(ctx, readFile, map[string]string{"session_id": s.SessionID, "path": path}, &file)
		return file.Text, err
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tasks == nil {
		f.tasks = make(map[*server.Conn][]string)
	}
	old, known := f.tasks[conn]
	if !known && !conn.Go(func(connected context.Context) { <-connected.Done(); f.withdraw(conn) }) {
		f.readers.Withdraw(s.UUID)
		return
	}
	tasks := append(old, s.UUID)
	if over := len(tasks) - sessionsRead; over > 0 {
		f.readers.Withdraw(tasks[:over]...)
		tasks = append([]string(nil), tasks[over:]...)
	}
	f.tasks[conn] = tasks
}

// withdraw takes back what a connection has offered.
func (f *editorFiles) withdraw(conn *server.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readers.Withdraw(f.tasks[conn]...)
	delete(f.tasks, conn)
}
