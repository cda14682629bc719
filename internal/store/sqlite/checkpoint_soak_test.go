//go:build soak

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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// During continuous writes and reads the write-ahead log stays short, and in a pause its space is
// freed.
func TestWriteAheadLogStaysShort(t *testing.T) {
	s := openNew(t)
	session := storetest.NewSession(t, s, "")
	turn := storetest.AddTurn(t, s, session.ID, domain.Running)
	reading, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for seq := int64(0); reading.Err() == nil; {
			events, _ := s.Events(reading, seq, 256)
			if seq = 0; len(events) == 256 {
				seq = events[255].Seq
			}
		}
	}()
	const limit = walMost * pageSize
	text := strings.Repeat("what an agent says ", 200)
	written, longest := int64(0), int64(0)
	for written < 5*limit {
		storetest.Write(t, s, func(tx store.Tx) error {
			for range 20 {
				if _, err := tx.Append(domain.Event{Session: session.ID, Turn: turn.ID, Payload: domain.MessageAdded{Text: text}}); err != nil {
					return err
				}
				written += int64(len(text))
			}
			return nil
		})
		info, err := os.Stat(s.Path() + "-wal")
		require.NoError(t, err)
		longest = max(longest, info.Size())
	}
	t.Logf("%.1f MB were written; the log had %.1f MB at most", float64(written)/1e6, float64(longest)/1e6)
	assert.Less(t, longest, int64(3*limit))
	stop()
	<-ended
	require.Eventually(t, func() bool {
		info, err := os.Stat(s.Path() + "-wal")
		return err == nil && info.Size() <= limit/8
	}, time.Minute, 10*time.Millisecond)
}
