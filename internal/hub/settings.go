package hub

import (
	"context"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// UpdateSettings changes the thread of a run.
func (h *Hub) UpdateSettings(ctx context.Context, id string, c SettingsChange) (domain.Session, error) {
	if c.Mode != nil {
		if _, err := checkMode(*c.Mode); err != nil || *c.Mode == "" {
			return domain.Session{}, domain.Invalid("permission_mode", "a permission mode", "another value",
				catalog.ModeDefault, catalog.ModeAcceptEdits, catalog.ModeBypass, catalog.ModePlan)
		}
	}
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
		if c.Mode != nil {
			if err := h.checkHeld(thread.Agent, *c.Mode); err != nil {
				return err
			}
		}
		changed := domain.SettingsChanged{
			Title: c.Title, Mode: c.Mode, Model: c.Model, Archived: c.Archived, AutoAcceptEdits: c.AutoAcceptEdits, SkipPermissions: c.SkipPermissions,
		}
		set(&thread.Title, c.Title)
		set(&thread.Mode, c.Mode)
		set(&thread.Model, c.Model)
		set(&thread.Archived, c.Archived)
		set(&thread.Settings.AutoAcceptEdits, c.AutoAcceptEdits)
		set(&thread.Settings.SkipPermissions, c.SkipPermissions)
		set(&thread.Settings.AdditionalDirectories, c.AdditionalDirectories)
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
		if run.Mode == mode {
			continue
		}
		run.Mode = mode
		if err := t.UpdateRun(run); err != nil {
			return err
		}
	}
	return nil
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}
