// Package editorfiles knows whom to ask for the files that an agent reads in a task: the
// editor that began it may have them otherwise than the disk, with what is not saved.
// Nobody else's task reads them there.
package editorfiles

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// answerWithin is how long an editor may take; then the file on the disk counts.
const answerWithin = 5 * time.Second

// errNobody says that no editor has the task's files.
var errNobody = errors.New("no editor has offered the files of this task")

// A ReadFunc asks an editor for the text of a file.
type ReadFunc func(ctx context.Context, path string) (string, error)

// Readers are the editors to ask, by task. The zero value has none. Its methods may be
// called from any goroutine.
type Readers struct {
	mu     sync.Mutex // guards byTask
	byTask map[string]ReadFunc
}

// Offer has the files of a task read by an editor, until it is withdrawn.
func (r *Readers) Offer(task string, read ReadFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byTask == nil {
		r.byTask = make(map[string]ReadFunc)
	}
	r.byTask[task] = read
}

// Withdraw forgets tasks.
func (r *Readers) Withdraw(tasks ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, task := range tasks {
		delete(r.byTask, task)
	}
}

// ReadEditorFile implements catalog.EditorFiles.
func (r *Readers) ReadEditorFile(ctx context.Context, p catalog.ReadEditorFileParams) (catalog.ReadEditorFileResult, error) {
	r.mu.Lock()
	read := r.byTask[p.TaskID]
	r.mu.Unlock()
	if read == nil {
		return catalog.ReadEditorFileResult{}, errNobody
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	text, err := read(ctx, p.Path)
	return catalog.ReadEditorFileResult{Found: err == nil, Text: text}, nil
}
