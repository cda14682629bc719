package hubprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/server"
)

// Answers answer the requests of a line that end with their answer, by method.
type Answers map[string]func(ctx context.Context, params json.RawMessage) (any, error)

// Bridge is the far end of a line (line.go): it reads one request from near, and answers. After that of
// host.connect, which connects to the project's daemon, it passes bytes unchanged until either side ends.
// The error, if there is one, was sent to near as well.
func Bridge(ctx context.Context, s *Settings, near server.Transport, answers Answers) error {
	method, params, err := readRequest(near)
	if err != nil {
		return reply(near, nil, err)
	}
	if method == connectMethod {
		return bridge(ctx, s, near, params)
	}
	answer := answers[method]
	if answer == nil {
		return reply(near, nil, fmt.Errorf("no line has the request %q", method))
	}
	result, err := answer(ctx, params)
	return reply(near, result, err)
}

func bridge(ctx context.Context, s *Settings, near server.Transport, params json.RawMessage) error {
	var request connectRequest
	err := json.Unmarshal(params, &request)
	if err == nil {
		err = request.Environment.Check()
	}
	if err != nil {
		return reply(near, nil, fmt.Errorf("the params of %s: %w", connectMethod, err))
	}
	own := *s
	for name, value := range request.Environment {
		os.Setenv(name, value) // Check has seen it, so that it cannot fail
		own.EnvFrom = append(own.EnvFrom, name)
	}
	own.Observes = request.Observes
	answer := connectAnswer{Version: s.Version, Protocol: Protocol, Notes: []string{}}
	if request.Notices {
		own.Notice = func(text string) { answer.Notice = text }
	}
	conn, p, err := own.start(ctx, request.Start)
	if err != nil {
		return reply(near, nil, err)
	}
	defer conn.Close()
	answer.Root, answer.Notes = p.Root, append(answer.Notes, p.Notes...)
	if err := reply(near, answer, nil); err != nil {
		return err
	}
	return pass(near, conn)
}

// readRequest reads the request of a line.
func readRequest(near server.Transport) (method string, params json.RawMessage, err error) {
	var m frame.Message
	if err := frame.NewReader(near, frame.LSP, frame.Limits{}).Next(&m); err != nil {
		return "", nil, fmt.Errorf("the request of the line cannot be read: %w", err)
	}
	name, _ := rawjson.Text(m.Method)
	if len(m.Params) == 0 {
		return string(name), json.RawMessage("{}"), nil
	}
	return string(name), m.Params, nil
}

// start connects to the project's daemon. If none runs, it starts one if it may.
func (s *Settings) start(ctx context.Context, may Start) (net.Conn, project.Project, error) {
	p, err := s.Project()
	if err != nil {
		return nil, p, err
	}
	conn, err := Connect(ctx, s, p)
	switch {
	case err == nil || !MayComeYet(err):
	case IsNone(err) && (may == StartNever && p.Unlocked() || may == StartUnlessStopped && p.Stopped()):
	case IsNone(err) && may == StartIfUsed && !p.HasDatabase():
		err = project.ErrNoDatabase
	default:
		if err = EnsureDaemon(ctx, s, p); err == nil {
			conn, err = Connect(ctx, s, p)
		}
	}
	return conn, p, err
}

// reply answers the request to connect, with a refusal if err is set, and returns err.
func reply(near io.Writer, answer any, err error) error {
	message := map[string]any{"jsonrpc": "2.0", "id": 0}
	if err != nil {
		var refusal connectRefusal
		refusal.Message, refusal.Data.Kind = err.Error(), kindOf(err)
		message["error"] = refusal
	} else {
		message["result"] = answer
	}
	body, failed := json.Marshal(message)
	if failed == nil {
		_, failed = near.Write(frame.Append(nil, frame.LSP, body))
	}
	return errors.Join(err, failed)
}

// kindOf returns the kind of a refusal.
func kindOf(err error) string {
	switch {
	case errors.Is(err, project.ErrNoDatabase):
		return lineNeverUsed
	case errors.As(err, new(project.NoDirectoryError)):
		return lineNoProject
	case errors.As(err, new(*socket.NoListenerError)):
		return lineNone
	}
	return lineFailed
}

// pass passes bytes between the line and the daemon. It returns when the daemon has ended the
// connection: the near side's end only ends what goes to the daemon.
func pass(near server.Transport, daemon net.Conn) error {
	go func() { // blocked in a read of standard input, it ends with the process
		_, _ = io.Copy(daemon, near)
		if half, ok := daemon.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}()
	_, err := io.Copy(near, daemon)
	return err
}
