package hub

import (
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// A foreignAnswers is what was answered to an executor that somebody else wrote
// and does not tell what its agent takes: whatever it reports next shows it. The
// zero value has none.
type foreignAnswers struct {
	mu    sync.Mutex // guards given
	given []string
}

// give notes an answer that goes to the executor.
func (f *foreignAnswers) give(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.given = append(f.given, id)
}

// taken is the report of what a later report shows, or nil.
func (f *foreignAnswers) taken(run int64) *report {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.given) == 0 {
		return nil
	}
	r := &report{run: run, kind: catalog.EventPermissionTaken, data: encode(catalog.PermissionTaken{ApprovalIDs: f.given})}
	f.given = nil
	return r
}
