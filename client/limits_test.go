package client_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// A message longer than the server accepts is not sent, and the connection continues.
func TestAMessageThatIsTooLongIsNotSent(t *testing.T) {
	const most = 1000
	s := serve(t, standard())
	c := dial(t, client.Socket(s.path), client.WithMaxMessage(most))
	var got string
	require.NoError(t, c.Call(context.Background(), "echo", strings.Repeat("x", most/2), &got))
	assert.Len(t, got, most/2)
	assert.ErrorIs(t, c.Call(context.Background(), "echo", strings.Repeat("x", most), nil), client.ErrTooLong)
	assert.ErrorIs(t, c.Notify(context.Background(), "echo", strings.Repeat("x", most)), client.ErrTooLong)
	require.NoError(t, c.Call(context.Background(), "echo", "on", &got))
}

// Incoming messages are bounded too. A longer result is dropped and logged, its call ends with
// its timeout, and the connection continues.
func TestAResultThatIsTooLongIsDropped(t *testing.T) {
	const most = 1000
	s := serve(t, standard())
	for _, framing := range []frame.Framing{frame.NDJSON, frame.LSP} {
		var log testkit.Text
		c := dial(t, client.Socket(s.path), client.WithFraming(framing), client.WithLimits(frame.Limits{MaxFrame: most}),
			client.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		err := c.Call(context.Background(), "echo", strings.Repeat("x", most), nil, client.WithTimeout(50*time.Millisecond))
		assert.ErrorIs(t, err, client.ErrTimeout)
		var got string
		require.NoError(t, c.Call(context.Background(), "echo", strings.Repeat("x", most/2), &got))
		assert.Len(t, got, most/2)
		assert.Contains(t, log.String(), "reason=oversize")
	}
}
