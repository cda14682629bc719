package trigger

import (
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// metaEnabled is the named value that says whether triggers are switched on.
const metaEnabled = "automation_enabled"

// enabled reports whether triggers are switched on as a whole.
func (e *Engine) enabled(ctx context.Context, r store.ExecutorReader) (bool, error) {
	value, err := r.Meta(ctx, metaEnabled)
	return value != "false", err
}

// SwitchAll switches all triggers on or off, whatever each is by itself. That holds until
// it is switched again.
func (e *Engine) SwitchAll(ctx context.Context, on bool) error {
	value := "true"
	if !on {
		value = "false"
	}
	triggers := e.visible(true)
	err := e.opts.Runs.Write(ctx, func(t store.Tx) error {
		was, err := e.enabled(ctx, t)
		if err != nil {
			return err
		}
		if on && !was {
			for _, d := range triggers {
				if err := e.putSeen(ctx, t, d.ID, nil); err != nil {
					return err
				}
			}
		}
		return t.SetMeta(metaEnabled, value)
	})
	e.Look()
	return err
}

// Switch switches a trigger on or off. known is false where there is none of that id that
// whoever asks may see.
func (e *Engine) Switch(ctx context.Context, id string, on, trusted bool) (known bool, err error) {
	for _, d := range e.visible(trusted) {
		known = known || d.ID == id
	}
	if !known {
		return false, nil
	}
	err = e.opts.Runs.Write(ctx, func(t store.Tx) error { return e.putSeen(ctx, t, id, &on) })
	e.Look()
	return true, err
}

// putSeen notes what a trigger was switched to, if it was, and that what happened until
// now is not for it.
func (e *Engine) putSeen(ctx context.Context, t store.Tx, id string, on *bool) error {
	state, err := t.TriggerState(ctx, id)
	if err != nil {
		return err
	}
	if on != nil {
		state.Enabled = on
	}
	if on == nil || *on {
		state.Looked = time.Now()
	}
	return t.PutTriggerState(state)
}

// visible are the triggers that somebody may see: who does not trust the workspace, those
// of the user's own file.
func (e *Engine) visible(trusted bool) (list []config.Trigger) {
	now, err := e.opts.Definitions()
	if err != nil {
		return nil
	}
	for _, d := range now.Triggers {
		if trusted || !d.FromProject {
			list = append(list, d)
		}
	}
	return list
}
