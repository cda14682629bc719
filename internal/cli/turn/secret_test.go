package turn

import (
	"context"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// Refusing the key would end the turn as failed before the interrupt arrives.
func TestSignalDuringKeyQuestionInterrupts(t *testing.T) {
	var answers []string
	reg := server.NewRegistry()
	server.Handle(reg, "ping", func(context.Context, struct{}) (bool, error) { return true, nil })
	server.Handle(reg, "secret.provide", func(_ context.Context, p map[string]string) (bool, error) {
		answers = append(answers, p["secret"])
		return true, nil
	})
	near, far := server.Pipe()
	conn := server.New(reg, server.Options{}).Connect(t.Context(), far, frame.LSP)
	c, err := client.Dial(t.Context(), client.OverTransport(near, frame.LSP))
	require.NoError(t, err)
	defer func() { c.Close(); <-conn.Done() }()
	d := &protocol.SecretEvent{RequestID: "r", Service: "s"}

	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		var running sync.WaitGroup
		var taken []os.Signal
		signals := make(chan os.Signal, 1)
		a, _, _ := asking(hubclient.Approval{})
		a.hub, a.terminal, a.Signals = c, os.Stdin, signals
		a.interrupt = func(s os.Signal) { taken = append(taken, s) }
		signals <- sig
		a.giveKey(t.Context(), d, &running)
		running.Wait()
		assert.Equal(t, []os.Signal{sig}, taken)
		assert.Empty(t, answers)
	}
}
