package hub

import (
	"github.com/duet-rpc/duet-rpc/internal/adoption"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Adoption takes in conversations that were begun elsewhere.
func (h *Hub) Adoption() *adoption.Adoption { return h.adoption }

func (h *Hub) newAdoption() *adoption.Adoption {
	return adoption.New(adoption.Options{
		Store: h.store, Query: h.query, Conversation: h.conversation, Intake: h.intake, Root: h.opts.Root, Write: h.write, Note: h.noteWrite, Directory: h.directory,
		Begin: func(t store.Tx, thread *domain.Thread) error { return h.addThread(t, thread, "") },
		Complete: func(t store.Tx, run *domain.Run) error {
			return h.transition(t, run, domain.Completed, outcome{reason: "adopted"})
		},
	})
}
