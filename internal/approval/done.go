package approval

import (
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Done notes in the conversation that what a person agreed to do at an address is
// done, as the agent of the run has it. Of what that run did not ask nothing is said.
func (in *Inbox) Done(t store.Tx, run domain.Run, id string) error {
	a, err := t.Approval(in.ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && (a.Run != run.ID || a.Elicitation.Mode != domain.ElicitURL) {
		return nil
	}
	if err != nil {
		return err
	}
	return in.noteDelivery(t, a, run, "the agent says that this is done")
}
