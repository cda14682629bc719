package host

import (
	"slices"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/database"
)

// notices are what was found in the database's place, which health tells from
// then on. They may be used by any goroutine.
type notices struct {
	mu   sync.Mutex // guards the field below
	list []database.Notice
}

func (n *notices) add(more []database.Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, more...)
}

// forget forgets what was said of a directory of what is not used.
func (n *notices) forget(dir string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = slices.DeleteFunc(n.list, func(n database.Notice) bool { return n.Aside == dir })
}

func (n *notices) texts() (texts []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, notice := range n.list {
		texts = append(texts, notice.Text)
	}
	return texts
}
