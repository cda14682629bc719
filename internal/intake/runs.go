package intake

import "sync"

// runs are the runs that go on, by their row.
type runs struct {
	mu   sync.Mutex // guards byID
	byID map[int64]*Run
}

// get is a run that goes on, or nil.
func (r *runs) get(id int64) *Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}

func (r *runs) put(id int64, run *Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byID[id] = run
}

func (r *runs) remove(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, id)
}

// withTask are the runs with that UUID: one, or none.
func (r *runs) withTask(task string) (found []*Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, run := range r.byID {
		if run.task == task {
			found = append(found, run)
		}
	}
	return found
}
