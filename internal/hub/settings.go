package hub

import (
	"context"
	"errors"
	"maps"

	"github.com/duet-rpc/duet-rpc/internal/agentsetting"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// UpdateSettings changes the thread of a run. An agent that works on it is told its
// mode, its model and its options beside: what it does not take is an error of its
// run. SetAgent waits for that.
func (h *Hub) UpdateSettings(ctx context.Context, id string, c SettingsChange) (domain.Session, error) {
	if _, err := h.checkChange(ctx, id, c); err != nil {
		return domain.Session{}, err
	}
	s, err := h.keepSettings(ctx, id, c)
	if err == nil && c.isForAgent() {
		h.active.Go(func() { h.setBeside(s, c) })
	}
	return s, err
}

// SetAgent is UpdateSettings that waits until an agent that works on the thread has
// taken its mode, its model and its options, which live tells. If it refuses them
// nothing is changed.
func (h *Hub) SetAgent(ctx context.Context, id string, c SettingsChange) (s domain.Session, live bool, err error) {
	named, err := h.checkChange(ctx, id, c)
	if err != nil {
		return domain.Session{}, false, err
	}
	if live, err = h.setLive(ctx, named.Thread, c); err != nil {
		return domain.Session{}, false, err
	}
	s, err = h.keepSettings(ctx, id, c)
	return s, live, err
}

// checkChange refuses a change that makes no sense, and returns the session that id
// names.
func (h *Hub) checkChange(ctx context.Context, id string, c SettingsChange) (domain.Session, error) {
	if c.Mode != nil && *c.Mode == "" {
		return domain.Session{}, domain.Invalid("permission_mode", "a permission mode", "an empty string", agentsetting.Duets...)
	}
	named, err := h.query.Session(ctx, id)
	if err != nil {
		return domain.Session{}, err
	}
	var mode, model string
	set(&mode, c.Mode)
	set(&model, c.Model)
	return named, h.checkSettings(ctx, h.store, named.Thread.ID, named.Thread.Agent, mode, model, c.Options)
}

// keepSettings makes a change that was checked.
func (h *Hub) keepSettings(ctx context.Context, id string, c SettingsChange) (domain.Session, error) {
	var run domain.Run
	err := h.write(ctx, func(t store.Tx) error {
		var err error
		if run, err = find(h.ctx, t, id); err != nil {
			return err
		}
		thread, err := t.Thread(h.ctx, run.Thread)
		if err != nil {
			return err
		}
		changed := domain.SettingsChanged{
			Title: c.Title, Mode: c.Mode, Model: c.Model, Archived: c.Archived, AutoAcceptEdits: c.AutoAcceptEdits, SkipPermissions: c.SkipPermissions,
			Options: c.Options,
		}
		set(&thread.Title, c.Title)
		set(&thread.Mode, c.Mode)
		set(&thread.Model, c.Model)
		set(&thread.Archived, c.Archived)
		set(&thread.Settings.AutoAcceptEdits, c.AutoAcceptEdits)
		set(&thread.Settings.SkipPermissions, c.SkipPermissions)
		set(&thread.Settings.AdditionalDirectories, c.AdditionalDirectories)
		thread.Settings.Options = withOptions(thread.Settings.Options, c.Options)
		if c.SkipPermissions != nil {
			thread.Settings.SkipPermissionsUntil = nil
			if d := c.SkipPermissionsTimeout; d != nil && *d > 0 && *c.SkipPermissions {
				until := t.Now().Add(*d).UTC()
				thread.Settings.SkipPermissionsUntil = &until
				changed.SkipUntil = until
			}
		}
		set(&run.Title, c.Title)
		set(&run.Mode, c.Mode)
		if err := t.UpdateRun(run); err != nil {
			return err
		}
		if c.Mode != nil { // whichever run of the thread was named
			if err := h.setModes(t, &thread, *c.Mode); err != nil {
				return err
			}
		}
		if err := t.UpdateThread(thread); err != nil {
			return err
		}
		h.query.Changed(t, run.ID)
		if err := h.announce(t, run, changed); err != nil {
			return err
		}
		return h.approvals.Reconsider(t, thread.ID)
	})
	if err != nil {
		return domain.Session{}, err
	}
	return h.query.ByRun(ctx, run.ID)
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

// setModes changes the mode of a thread's runs that have not ended. Those that
// have are not touched, however many there are: what follows them begins with the
// thread's.
func (h *Hub) setModes(t store.Tx, thread *domain.Thread, mode string) error {
	last, err := t.LastRun(h.ctx, thread.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	thread.Settings.ModeRun = last.ID
	runs, err := t.UnfinishedRuns(h.ctx, thread.ID)
	if err != nil {
		return err
	}
	for _, run := range runs {
		agentMode := run.AgentMode
		if run.State == domain.Draft || run.State == domain.Queued {
			agentMode = "" // the one that it would have gone on in
		}
		if run.Mode == mode && run.AgentMode == agentMode {
			continue
		}
		run.Mode, run.AgentMode = mode, agentMode
		if err := t.UpdateRun(run); err != nil {
			return err
		}
	}
	return nil
}
