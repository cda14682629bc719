package sqlite

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/storetest"

	"github.com/stretchr/testify/require"
)

// After the writes and reads have stopped, the write-ahead log is short again, however long it
// was. The test with the tag soak checks its length meanwhile.
func TestWriteAheadLogIsCutShort(t *testing.T) {
	s := openNew(t)
	session := storetest.NewSession(t, s, "")
	turn := storetest.AddTurn(t, s, session.ID, domain.Running)
	const limit = walMost * pageSize
	text := strings.Repeat("what an agent says ", 200)
	reading, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for reading.Err() == nil {
			_, _ = s.Events(reading, 0, 256)
		}
	}()
	for written := 0; written < 2*limit; {
		storetest.Write(t, s, func(tx store.Tx) error {
			for range 20 {
				if _, err := tx.Append(domain.Event{Session: session.ID, Turn: turn.ID, Payload: domain.MessageAdded{Text: text}}); err != nil {
					return err
				}
				written += len(text)
			}
			return nil
		})
	}
	stop()
	<-ended
	require.Eventually(t, func() bool {
		info, err := os.Stat(s.Path() + "-wal")
		return err == nil && info.Size() <= limit/8
	}, time.Minute, 10*time.Millisecond)
}
