package turn

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// lines is a writer that sends the output of a view to a channel.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// attended shows a turn until end is called. Its hub answers turn.interrupt with an error.
func attended(t *testing.T, refusal error) (signals chan<- os.Signal, said lines, end func(), ended <-chan error) {
	t.Helper()
	reg := server.NewRegistry()
	server.Handle(reg, "ping", func(context.Context, struct{}) (bool, error) { return true, nil })
	server.Handle(reg, "event.subscribe", func(context.Context, json.RawMessage) (map[string]any, error) {
		return map[string]any{"subscription_id": "sub", "seq": 0}, nil
	})
	server.Handle(reg, "Unsubscribe", func(context.Context, json.RawMessage) (bool, error) { return true, nil })
	server.Handle(reg, "turn.interrupt", func(context.Context, json.RawMessage) (bool, error) { return false, refusal })
	server.Handle(reg, "turn.get", func(context.Context, json.RawMessage) (map[string]any, error) {
		return map[string]any{"turn": members{"turn": "1.1", "turn_uuid": "s", "state": "completed"}}, nil
	})
	near, far := server.Pipe()
	conn := server.New(reg, server.Options{}).Connect(t.Context(), far, frame.LSP)
	c, err := client.Dial(t.Context(), client.OverTransport(near, frame.LSP))
	require.NoError(t, err)
	t.Cleanup(func() {
		c.Close()
		<-conn.Done()
	})
	taken, over, said := make(chan os.Signal), make(chan error, 1), make(lines, 100)
	go func() {
		_, interrupted, err := Attend(t.Context(), c, NewView(said, said, true, false), protocol.Turn{ID: "s"}, Options{
			Signals: taken, EndNow: func() { t.Error("there was one signal") }, SilentAfter: time.Hour, WhySilent: func() string { return "" },
		})
		assert.Equal(t, !errors.Is(err, ErrHungUp), interrupted)
		over <- err
	}()
	return taken, said, func() {
		require.NoError(t, conn.Notify(t.Context(), "event", members{
			"subscription_id": "sub", "seq": 1, "kind": protocol.KindTurnState, "turn_uuid": "s", "data": members{"state": "completed"},
		}))
	}, over
}

// With a full disk the hub cannot store the end of a turn, so no event arrives.
func TestTerminationDoesNotWaitForFailedInterrupt(t *testing.T) {
	full := server.NewError(-32603, "the disk is full", map[string]string{"kind": "subsystem_unavailable"})
	for sig, says := range map[os.Signal]string{syscall.SIGTERM: "the disk is full", syscall.SIGHUP: "the session continues"} {
		signals, _, _, ended := attended(t, full)
		signals <- sig
		select {
		case err := <-ended:
			assert.ErrorContains(t, err, says)
		case <-time.After(10 * time.Second):
			require.Failf(t, "Attend does not end", "after a %v", sig)
		}
	}
	over := server.NewError(-32603, "it has ended", map[string]string{"kind": "not_running"})
	for sig, refusal := range map[os.Signal]error{os.Interrupt: full, syscall.SIGTERM: over} {
		signals, said, end, ended := attended(t, refusal)
		signals <- sig
		for text := ""; !strings.Contains(text, "the disk is full") && !strings.Contains(text, "it has ended"); text += <-said {
		}
		assert.Empty(t, ended, "the user may press C-c again, and an ended session sends its end")
		end()
		assert.NoError(t, <-ended, sig)
	}
}

// The view shows progress of the agent during a question, and repeats the question below it. The
// question does not split a message before the agent pauses.
func TestQuestionIsRepeatedBelowProgress(t *testing.T) {
	a, q, side := asking(hubclient.Approval{Approval: protocol.Approval{ApprovalID: "12345678-9", Type: domain.FunctionCall, ToolName: "Bash", ToolInput: json.RawMessage(`{"command":"ls"}`)}})
	a.view.session, a.waiting = protocol.Turn{ID: "s"}, []asked{q}
	a.prompt()
	side.Reset()
	for _, step := range []struct {
		kind  string
		data  members
		says  string
		waits bool
	}{
		{protocol.KindItemChanged, members{"type": "tool_call", "key": "a", "title": "Read x"}, "\n● Read x\n? $ ls\n[y] Allow, [n] Deny, [t] Deny and say why, [?] Keys: ", false},
		{protocol.KindTurnState, members{"state": "running"}, "", false},
		{protocol.KindText, members{"key": "1", "text": "Hel"}, "\nHel", true},
		{protocol.KindText, members{"key": "1", "text": "lo"}, "lo", true},
		{protocol.KindItemAdded, members{"type": "message", "role": "assistant", "key": "1", "text": "Hello"}, "\n? $ ls\n[y] Allow, [n] Deny, [t] Deny and say why, [?] Keys: ", false},
		{protocol.KindText, members{"key": "2", "text": "Again"}, "\nAgain", true},
	} {
		a.pause = nil
		a.view.show(happened(t, step.kind, step.data))
		a.promptAgain()
		assert.Equal(t, step.says, side.String(), "%s %v", step.kind, step.data)
		assert.Equal(t, step.waits, a.pause != nil)
		side.Reset()
	}
	a.paused()
	assert.Equal(t, "\n? $ ls\n[y] Allow, [n] Deny, [t] Deny and say why, [?] Keys: ", side.String())
	a.interrupts = true
	a.view.Note("interrupting")
	side.Reset()
	a.promptAgain()
	assert.Empty(t, side.String(), "an interrupted session asks no question")
}

// The view does not show a second question below the first one, so input answers the first.
func TestSecondQuestionWaitsForFirst(t *testing.T) {
	a, q, side := asking(hubclient.Approval{Approval: protocol.Approval{ApprovalID: "12345678-9", TurnUUID: "s", Type: domain.FunctionCall, ToolName: "Bash"}})
	a.terminal, a.seen = os.Stdin, map[string]bool{}
	a.waiting = []asked{q}
	a.ask(t.Context(), hubclient.Approval{Approval: protocol.Approval{ApprovalID: "23456789-0", TurnUUID: "s", Type: domain.FunctionCall, ToolName: "Write"}})
	assert.Empty(t, side.String())
	a.waiting = a.waiting[1:]
	a.next()
	assert.Contains(t, side.String(), "? Write\n[y] Allow")
}
