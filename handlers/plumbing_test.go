package handlers

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/dialect/humanlayer"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

func terminalOutput(data, encoding string) domain.Event {
	return domain.Event{Payload: domain.TerminalPrinted{TerminalID: "t1", Data: data, Encoding: encoding}}
}

func terminalEnd() domain.Event {
	return domain.Event{Payload: domain.TerminalExited{TerminalID: "t1"}}
}

// eventOf returns the type and the data of an event in a message to an editor.
func eventOf(t *testing.T, message any) (kind, data string) {
	t.Helper()
	var m struct {
		Params struct {
			Event struct {
				Type string
				Data json.RawMessage
			}
		}
	}
	b, err := json.Marshal(message)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &m))
	return m.Params.Event.Type, string(m.Params.Event.Data)
}

// played returns the messages of a terminal feed that were queued before its connection took any.
func played(t *testing.T, put func(*terminalFeed)) []string {
	t.Helper()
	var got []string
	f := newTerminalFeed(humanlayer.Framed, 0, func(_ context.Context, messages ...any) error {
		kind, data := eventOf(t, messages[0])
		got = append(got, kind+" "+data)
		return nil
	}, slog.New(slog.DiscardHandler))
	put(f)
	f.put(terminalEnd())
	f.put(terminalOutput("behind the end", "utf-8"))
	f.run(context.Background())
	return got
}

func TestTerminalOutputIsJoined(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	assert.Equal(t, []string{
		`terminal_output {"terminal_id":"t1","data":"abc","encoding":"utf-8"}`,
		`terminal_output {"terminal_id":"t1","data":"` + b64([]byte{0xff, 0xfe}) + `","encoding":"base64"}`,
		`terminal_output {"terminal_id":"t1","data":"d","encoding":"utf-8"}`,
		`terminal_exit {"terminal_id":"t1","exit_code":0}`,
	}, played(t, func(f *terminalFeed) {
		f.put(terminalOutput("a", "utf-8"))
		f.put(terminalOutput("bc", ""))
		f.put(terminalOutput(b64([]byte{0xff}), "base64"))
		f.put(terminalOutput(b64([]byte{0xfe}), "base64"))
		f.put(terminalOutput("d", "utf-8"))
	}))
}

func TestTerminalOutputIsBounded(t *testing.T) {
	part := strings.Repeat("x", terminalQueue/8)
	fill := func(f *terminalFeed) {
		for range 8 {
			f.put(terminalOutput(part, "utf-8"))
		}
	}
	got := played(t, fill)
	assert.Len(t, got, 5, "a full queue in parts of 64 KiB, and the end")
	got = played(t, func(f *terminalFeed) {
		fill(f)
		f.put(terminalOutput("abc", "utf-8"))
		f.put(terminalOutput("d", "utf-8"))
	})
	require.Len(t, got, 6)
	assert.Equal(t, `lagged {"terminal_id":"t1","dropped_bytes":4}`, got[4])
	assert.Equal(t, `terminal_exit {"terminal_id":"t1","exit_code":0}`, got[5], "the end is never lost")
}

// A connection that is slow but reads loses no output. The terminal waits once for a connection
// that reads nothing.
func TestATerminalWaitsForItsConnection(t *testing.T) {
	part := strings.Repeat("x", terminalQueue/4)
	synctest.Test(t, func(t *testing.T) {
		var types []string
		took := make(chan struct{})
		f := newTerminalFeed(humanlayer.Framed, 0, func(_ context.Context, messages ...any) error {
			kind, _ := eventOf(t, messages[0])
			types = append(types, kind)
			time.Sleep(terminalPatience / 4)
			return nil
		}, slog.New(slog.DiscardHandler))
		go func() {
			defer close(took)
			f.run(context.Background())
		}()
		for range 40 {
			f.put(terminalOutput(part, "utf-8"))
		}
		f.put(terminalEnd())
		<-took
		assert.Len(t, types, 41)
		assert.NotContains(t, types, "lagged")
	})
	synctest.Test(t, func(t *testing.T) {
		var types []string
		goOn, ended := make(chan struct{}), make(chan struct{})
		f := newTerminalFeed(humanlayer.Framed, 0, func(_ context.Context, messages ...any) error {
			<-goOn
			kind, _ := eventOf(t, messages[0])
			types = append(types, kind)
			return nil
		}, slog.New(slog.DiscardHandler))
		go func() {
			defer close(ended)
			f.run(context.Background())
		}()
		for range 2 {
			began := time.Now()
			for range 40 {
				f.put(terminalOutput(part, "utf-8"))
			}
			assert.Equal(t, terminalPatience, time.Since(began), "one wait until the connection has read everything")
			for range 6 { // one in progress, four in the queue, and the report of the loss
				goOn <- struct{}{}
			}
			synctest.Wait()
		}
		want := []string{"terminal_output", "terminal_output", "terminal_output", "terminal_output", "terminal_output", "lagged"}
		assert.Equal(t, append(want, want...), types)

		// The end of a connection ends the wait for it.
		for range 5 {
			f.put(terminalOutput(part, "utf-8"))
		}
		time.AfterFunc(terminalPatience/2, f.finish)
		began := time.Now()
		f.put(terminalOutput(part, "utf-8"))
		assert.Equal(t, terminalPatience/2, time.Since(began))
		close(goOn)
		<-ended
	})
}

func TestATerminalFeedEndsWithItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTerminalFeed(humanlayer.Framed, 0, func(context.Context, ...any) error { return nil }, slog.New(slog.DiscardHandler))
		ctx, gone := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			f.run(ctx)
		}()
		synctest.Wait()
		gone()
		<-ended
		f.put(terminalOutput("x", "utf-8"))
		assert.Empty(t, f.queue, "an ended feed queues nothing")
	})
}

func TestHeartbeats(t *testing.T) {
	for d, want := range map[*protocol.EventForm]string{
		protocol.Native:   `{"jsonrpc":"2.0","method":"heartbeat","params":{"subscription_id":"sub"}}`,
		humanlayer.Framed: `{"jsonrpc":"2.0","method":"heartbeat","params":{"subscription_id":"sub","type":"heartbeat","message":"Connection alive"}}`,
		humanlayer.Lines:  `{"jsonrpc":"2.0","result":{"type":"heartbeat","message":"Connection alive"}}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			sent := make(chan time.Duration, 10)
			var s *subscription
			s = newSubscription(d, func(_ context.Context, messages ...any) error {
				b, err := json.Marshal(messages[0])
				if bytes.Contains(b, []byte(`"event"`)) {
					return err
				}
				sent <- time.Since(s.began)
				assert.Equal(t, want, string(b))
				return err
			})
			s.id = "sub"
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				s.live(ctx, nil)
			}()
			time.Sleep(heartbeatEvery - time.Second)
			require.NoError(t, s.deliver(ctx, eventlog.Notice{Event: domain.Event{Payload: domain.PlanChanged{}}}))
			time.Sleep(heartbeatEvery - time.Second)
			synctest.Wait()
			assert.Empty(t, sent, "the silence begins with the last event")
			time.Sleep(2 * time.Second)
			synctest.Wait()
			assert.Equal(t, 2*heartbeatEvery-time.Second, <-sent)
			assert.Empty(t, sent, "the next one is not due")
			time.Sleep(heartbeatEvery)
			synctest.Wait()
			assert.Equal(t, 3*heartbeatEvery-time.Second, <-sent)
			cancel()
			<-ended
		})
	}
}

// taking returns a send function that accepts messages of up to most bytes and records their sizes.
func taking(t *testing.T, most int, got *[]int) func(context.Context, ...any) error {
	return func(_ context.Context, messages ...any) error {
		message := messages[0]
		b, err := json.Marshal(message)
		require.NoError(t, err)
		if len(b) > most {
			return server.ErrTooLong
		}
		*got = append(*got, len(b))
		return nil
	}
}

func TestALongEventIsCutNotLost(t *testing.T) {
	const most = 100_000
	var got []int
	long := domain.Event{Payload: domain.MessageAdded{Type: "message", Text: strings.Repeat("x", most)}}
	require.NoError(t, sendEvent(context.Background(), taking(t, most, &got), humanlayer.Lines, "", most, long))
	require.Len(t, got, 1)
	assert.Greater(t, got[0], 16<<10, "as much as fits")
	refused := errors.New("gone")
	err := sendEvent(context.Background(), func(context.Context, ...any) error { return refused }, humanlayer.Lines, "", most, domain.Event{Payload: domain.PlanChanged{}})
	assert.ErrorIs(t, err, refused)
}

func TestOnlyWhoBeganATaskIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Readers
		read := func(task string) (catalog.ReadEditorFileResult, error) {
			return r.ReadEditorFile(t.Context(), catalog.ReadEditorFileParams{TaskID: task, Path: "/a"})
		}
		notFound := func(task string) {
			got, err := read(task)
			require.NoError(t, err)
			require.Zero(t, got)
		}
		notFound("mine")
		r.Offer("mine", func(_ context.Context, path string) (string, error) { return "text of " + path, nil })
		r.Offer("missing", func(context.Context, string) (string, error) { return "", errors.New("no such buffer") })
		r.Offer("silent", func(ctx context.Context, _ string) (string, error) { <-ctx.Done(); return "", ctx.Err() })
		got, err := read("mine")
		require.NoError(t, err)
		assert.Equal(t, catalog.ReadEditorFileResult{Found: true, Text: "text of /a"}, got)
		got, err = read("missing")
		require.NoError(t, err)
		assert.False(t, got.Found)
		began := time.Now()
		got, err = read("silent")
		require.NoError(t, err)
		assert.False(t, got.Found)
		assert.Equal(t, answerWithin, time.Since(began), "the wait for an editor is limited")
		notFound("another's")
		r.Withdraw("mine", "silent")
		notFound("mine")
	})
}

// A read waits for the offer of a starting turn, because the agent may be faster than the response
// to its client.
func TestAReadWaitsForTheOfferOfATurnThatIsBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Readers
		done := r.Starting()
		other := r.Starting()
		got := make(chan catalog.ReadEditorFileResult)
		go func() {
			result, _ := r.ReadEditorFile(t.Context(), catalog.ReadEditorFileParams{TaskID: "mine", Path: "/a"})
			got <- result
		}()
		synctest.Wait()
		other()
		synctest.Wait()
		r.Offer("mine", func(context.Context, string) (string, error) { return "not saved", nil })
		done()
		assert.Equal(t, catalog.ReadEditorFileResult{Found: true, Text: "not saved"}, <-got)
	})
}

// A method that waits for an agent, a command or git has no timeout of the Go client.
func TestLongCallsHaveNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := server.NewRegistry()
		for _, method := range []string{"session.adopt", "session.land", "echo"} {
			server.Handle(reg, method, func(ctx context.Context, _ none) (bool, error) {
				select {
				case <-ctx.Done():
					return false, ctx.Err()
				case <-time.After(time.Hour):
					return true, nil
				}
			}, server.LongRunning())
		}
		ours, end := server.Pipe()
		served := make(chan error, 1)
		go func() { served <- server.New(reg, server.Options{}).Serve(t.Context(), ours, frame.LSP) }()
		c, err := client.Dial(t.Context(), client.Opener(func(context.Context) (server.Transport, error) { return end, nil }), client.WithFraming(frame.LSP), client.WithReconnect(false))
		require.NoError(t, err)
		for _, method := range []string{"session.adopt", "session.land"} {
			done, _, err := hubclient.Call[bool](t.Context(), c, method, nil)
			require.NoError(t, err)
			assert.True(t, done)
		}
		_, _, err = hubclient.Call[bool](t.Context(), c, "echo", nil)
		require.ErrorIs(t, err, client.ErrTimeout)
		require.NoError(t, c.Close())
		<-served
	})
}

// The requests of a connection have the environment that its client sent last. The server forgets
// it at the end of the connection.
func TestAClientsEnvironment(t *testing.T) {
	workspaces := NewWorkspaces()
	reg := server.NewRegistry()
	RegisterCore(reg, Core{LogLevel: new(slog.LevelVar), Now: time.Now, Workspaces: workspaces})
	server.Handle(reg, "seen", func(ctx context.Context, _ none) (clientenv.Environment, error) {
		return clientenv.From(workspaces.Context(ctx)), nil
	}, server.LongRunning())
	srv := server.New(reg, server.Options{})
	connect := func() (*client.Client, chan error) {
		ours, end := server.Pipe()
		served := make(chan error, 1)
		go func() { served <- srv.Serve(context.Background(), ours, frame.LSP) }()
		c, err := client.Dial(t.Context(), client.Opener(func(context.Context) (server.Transport, error) { return end, nil }), client.WithFraming(frame.LSP), client.WithReconnect(false))
		require.NoError(t, err)
		return c, served
	}
	mine, served := connect()
	other, otherServed := connect()
	seen := func(c *client.Client) (e clientenv.Environment) {
		t.Helper()
		require.NoError(t, c.Call(t.Context(), "seen", nil, &e))
		return e
	}
	send := func(environment any) error {
		return mine.Call(t.Context(), "client.environment", map[string]any{"environment": environment}, nil)
	}
	assert.Nil(t, seen(mine))
	for _, e := range []clientenv.Environment{{"A": "1", "B": "2"}, {"A": "3"}} {
		require.NoError(t, send(e))
		assert.Equal(t, e, seen(mine))
		assert.Nil(t, seen(other))
	}
	for want, refused := range map[string]any{
		"null":               nil,
		"integer":            map[string]any{"A": 1},
		"a NUL in the value": map[string]any{"A": "secret\x00"},
		"more than 65536":    map[string]any{"A": strings.Repeat("secret", 20_000)},
	} {
		err := send(refused)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "secret")
	}
	assert.Equal(t, clientenv.Environment{"A": "3"}, seen(mine), "a refused environment changes nothing")
	require.NoError(t, mine.Close())
	require.NoError(t, <-served)
	assert.Eventually(t, func() bool {
		workspaces.mu.Lock()
		defer workspaces.mu.Unlock()
		return len(workspaces.environments) == 0
	}, time.Minute, time.Millisecond)
	require.NoError(t, other.Close())
	require.NoError(t, <-otherServed)
	var unknown *Workspaces
	unknown.setEnvironment(t.Context(), clientenv.Environment{})
	assert.Equal(t, t.Context(), unknown.Context(t.Context()))
}
