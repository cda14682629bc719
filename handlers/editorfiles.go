package handlers

import (
	"context"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/server"
)

// readFile is the request to a connection that has offered the files of its sessions
// (docs/protocol.md, "Files").
const readFile = "file.read"

// sessionsRead limits the turns of a connection whose files the hub reads there, to the last ones
// that it launched.
const sessionsRead = 64

// editorFiles stores the offers of connections to read files.
type editorFiles struct {
	readers *Readers // nil: no offer is accepted

	mu    sync.Mutex // guards tasks
	tasks map[*server.Conn][]string
}

// starting delays reads of files until done is called, if reads is set: the client
// will offer the files of the turn that it is about to start.
func (f *editorFiles) starting(reads bool) (done func()) {
	if !reads || f.readers == nil {
		return func() {}
	}
	return f.readers.Starting()
}

// offer lets the connection that launched a session read its files, until the connection ends.
func (f *editorFiles) offer(ctx context.Context, s domain.TurnInSession) {
	conn := server.ConnFrom(ctx)
	if f.readers == nil || conn == nil {
		return
	}
	f.readers.Offer(s.UUID, func(ctx context.Context, path string) (string, error) {
		var file struct {
			Text string `json:"text"`
		}
		err := conn.Call(ctx, readFile, map[string]string{"turn_uuid": s.HumanLayerSession, "path": path}, &file)
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

// withdraw withdraws the offers of a connection.
func (f *editorFiles) withdraw(conn *server.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readers.Withdraw(f.tasks[conn]...)
	delete(f.tasks, conn)
}

// answerWithin is how long an editor may take. After that the file on the disk counts.
const answerWithin = 5 * time.Second

// A ReadFunc asks an editor for the text of a file.
type ReadFunc func(ctx context.Context, path string) (string, error)

// Readers stores the editors that have the unsaved files of turns: an editor has those of the turns
// that it started. Turns of other clients read the disk. The zero value is empty. Its methods may be
// called from any goroutine.
type Readers struct {
	mu       sync.Mutex          // guards the fields below
	byTask   map[string]ReadFunc // by the task_id of the turn
	starting int                 // turns whose editor will make its offer
	settled  chan struct{}       // closed when starting is 0; nil while it is 0
}

// Starting must be called before the start of a turn whose files will be offered. Until done is
// called, a read for a turn without an offer waits: an agent may be faster than the reply to the client
// that started it.
func (r *Readers) Starting() (done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.starting++; r.starting == 1 {
		r.settled = make(chan struct{})
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.starting--; r.starting == 0 {
			close(r.settled)
			r.settled = nil
		}
	}
}

// Offer lets an editor read the files of a turn, by its task_id, until the offer is withdrawn.
func (r *Readers) Offer(task string, read ReadFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byTask == nil {
		r.byTask = make(map[string]ReadFunc)
	}
	r.byTask[task] = read
}

// Withdraw withdraws the offers for turns, by their task_ids.
func (r *Readers) Withdraw(tasks ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, task := range tasks {
		delete(r.byTask, task)
	}
}

// ReadEditorFile implements catalog.EditorFiles.
func (r *Readers) ReadEditorFile(ctx context.Context, p catalog.ReadEditorFileParams) (catalog.ReadEditorFileResult, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	read := r.offered(ctx, p.TaskID)
	if read == nil {
		return catalog.ReadEditorFileResult{}, nil // the file on the disk counts
	}
	text, err := read(ctx, p.Path)
	return catalog.ReadEditorFileResult{Found: err == nil, Text: text}, nil
}

// offered returns the function that reads the files of a turn, or nil.
func (r *Readers) offered(ctx context.Context, task string) ReadFunc {
	for {
		r.mu.Lock()
		read, settled := r.byTask[task], r.settled
		r.mu.Unlock()
		if read != nil || settled == nil {
			return read
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return nil
		}
	}
}
