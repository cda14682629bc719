package intake

import (
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// announce adds an event of a run to the log.
func announce(t store.Tx, run domain.Run, p domain.Payload) error {
	_, err := t.Append(run.Event(p))
	return err
}
