package hub

import (
	"cmp"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

func (h *Hub) newThread(t store.Tx, spec LaunchSpec, agent string) (domain.Thread, error) {
	thread := domain.Thread{
		UUID: cmp.Or(spec.ThreadUUID, uuid.Must(uuid.NewV7()).String()), Title: spec.Title, CWD: spec.CWD, Agent: agent, Mode: cmp.Or(spec.Mode, catalog.ModeDefault), Model: spec.Model,
		Settings: spec.Settings, Created: t.Now(), Active: t.Now(),
	}
	return thread, h.addThread(t, &thread, spec.ThreadAlias)
}

func (h *Hub) addThread(t store.Tx, thread *domain.Thread, alias string) error {
	if err := t.InsertThread(thread); err != nil {
		return err
	}
	if alias != "" && alias != thread.UUID {
		if err := t.SetAlias(alias, 0, thread.ID); err != nil {
			return err
		}
	}
	return t.SetAlias(thread.UUID, 0, thread.ID)
}

// fork is a new thread that shares another one up to a run. Its agent begins
// with the transcript: its own session knows more than it should.
func (h *Hub) fork(t store.Tx, from domain.Thread, at domain.Run, id string) (domain.Thread, error) {
	fork := from
	fork.ID, fork.UUID, fork.NativeSession = 0, cmp.Or(id, uuid.Must(uuid.NewV7()).String()), ""
	fork.Parent, fork.ForkRun, fork.Archived = from.ID, at.ID, false
	fork.Created, fork.Active = t.Now(), t.Now()
	// What was accepted for one conversation is not for another.
	fork.Mode = asking(fork.Mode)
	fork.Settings.SkipPermissions, fork.Settings.SkipPermissionsUntil, fork.Settings.AutoAcceptEdits = false, nil, false
	return fork, h.addThread(t, &fork, "")
}

// forkMode takes from a run what was accepted for another conversation.
func forkMode(run *domain.Run) {
	if run.AgentMode != "" && run.AgentMode != catalog.ModePlan {
		run.AgentMode, run.Mode = "", catalog.ModeDefault
	}
	run.Mode = asking(run.Mode)
}

// asking is a mode without what passes unasked, which of an agent's own modes
// nobody knows.
func asking(mode string) string {
	if mode == catalog.ModePlan {
		return mode
	}
	return catalog.ModeDefault
}
