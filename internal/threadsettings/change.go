package threadsettings

import (
	"maps"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Change changes a thread; a nil field means no change.
type Change struct {
	Agent                  *string // its name; the fields below are then of that one
	Title                  *string
	Mode                   *string
	Model                  *string
	AutoAcceptEdits        *bool
	SkipPermissions        *bool
	SkipPermissionsTimeout *time.Duration // 0: without end
	Archived               *bool
	AdditionalDirectories  *[]string
	Options                map[string]string // of the agent, by ID; "": it is not asked for any more; nil: no change
}

// isForAnother reports whether a thread is to have another agent than it has.
func (c Change) isForAnother(thread domain.Thread) bool {
	return c.Agent != nil && *c.Agent != thread.Agent
}

// isForAgent reports whether an agent is to be told of it.
func (c Change) isForAgent() bool {
	return c.Mode != nil || c.Model != nil || len(c.Options) > 0
}

// withOptions are options after a change, of which "" takes one away.
func withOptions(options, change map[string]string) map[string]string {
	if len(change) == 0 {
		return options
	}
	changed := maps.Clone(options)
	if changed == nil {
		changed = make(map[string]string)
	}
	for id, value := range change {
		if changed[id] = value; value == "" {
			delete(changed, id)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return changed
}

// set sets a field to a value, if there is one.
func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// announce adds an event of a run to the log.
func announce(t store.Tx, run domain.Run, p domain.Payload) error {
	_, err := t.Append(run.Event(p))
	return err
}
