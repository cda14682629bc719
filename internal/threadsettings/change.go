package threadsettings

import (
	"maps"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Change is a change of a thread's settings; a nil field means no change.
type Change struct {
	Agent                  *string // configured name; the fields below then apply to that agent
	Title                  *string
	Mode                   *string
	Model                  *string
	AutoAcceptEdits        *bool
	SkipPermissions        *bool
	SkipPermissionsTimeout *time.Duration // 0: unlimited
	Archived               *bool
	AdditionalDirectories  *[]string
	Options                map[string]string // the agent's options by id; "" removes one; nil: no change
}

// isForAnother reports whether it changes the thread's agent.
func (c Change) isForAnother(thread domain.Thread) bool {
	return c.Agent != nil && *c.Agent != thread.Agent
}

// isForAgent reports whether the agent must get it.
func (c Change) isForAgent() bool {
	return c.Mode != nil || c.Model != nil || len(c.Options) > 0
}

// withOptions returns options with a change applied; "" removes an option.
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

// set sets *field to *value unless value is nil.
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
