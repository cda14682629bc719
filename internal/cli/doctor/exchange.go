package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// exchangeTimeout bounds a whole exchange.
const exchangeTimeout = 10 * time.Second

// step is one request of the exchange and what its reply must tell.
type step struct {
	request string
	check   func(result json.RawMessage, errorCode int) bool
}

// steps are what an editor might ask on its first day.
var steps = []step{
	{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`,
		func(result json.RawMessage, _ int) bool {
			var r struct{ ServerInfo struct{ Name string } }
			return json.Unmarshal(result, &r) == nil && r.ServerInfo.Name == "duet-rpc"
		},
	},
	{
		`{"jsonrpc":"2.0","id":2,"method":"ping","params":null}`,
		func(result json.RawMessage, _ int) bool {
			var r struct{ Pong bool }
			return json.Unmarshal(result, &r) == nil && r.Pong
		},
	},
	{
		`{"jsonrpc":"2.0","id":3,"method":"echo","params":["größer ✓ 二重奏"]}`,
		func(result json.RawMessage, _ int) bool { return string(result) == `["größer ✓ 二重奏"]` },
	},
	{
		`{"jsonrpc":"2.0","id":4,"method":"setLogLevel","params":{"level":"loud"}}`,
		func(_ json.RawMessage, code int) bool { return code == -32602 },
	},
	{
		`{"jsonrpc":"2.0","id":5,"method":"shutdown"}`,
		func(result json.RawMessage, code int) bool { return code == 0 && len(result) > 0 },
	},
}

// exchange starts program as an editor would, goes through the steps, and
// waits for its end. Each message goes to show. It returns how many requests
// were answered as they should be. The program gets a project of its own: a slow one
// would open its database before it ends, and doctor changes nothing in the user's project.
func exchange(program string, show io.Writer) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), exchangeTimeout)
	defer cancel()
	root, err := os.MkdirTemp("", "duet-doctor")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(root)
	cmd := exec.CommandContext(ctx, program, "serve", "--log-level", "error", "--root", root)
	cmd.Env = append(os.Environ(), project.StateVariable+"="+filepath.Join(root, "state")) // so that nothing stays behind
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("cannot start it: %w", err)
	}
	n, err := converse(stdin, frame.NewReader(stdout, frame.LSP, frame.Limits{}), show)
	stdin.Close()
	if waitErr := cmd.Wait(); err == nil && waitErr != nil {
		err = fmt.Errorf("it did not end as it should: %w", waitErr)
	}
	return n, err
}

// converse goes through the steps with a program that was started.
func converse(in io.Writer, out *frame.Reader, show io.Writer) (int, error) {
	for i, s := range steps {
		request := frame.Append(nil, frame.LSP, []byte(s.request))
		fmt.Fprintf(show, "editor → duet-rpc\n%s\n\n", indented(request))
		began := time.Now()
		if _, err := in.Write(request); err != nil {
			return i, fmt.Errorf("it does not accept requests: %w", err)
		}
		var m frame.Message
		if err := out.Next(&m); err != nil {
			return i, fmt.Errorf("request %d was not answered: %w", i+1, err)
		}
		fmt.Fprintf(show, "duet-rpc → editor, %v later\n%s\n\n",
			time.Since(began).Round(10*time.Microsecond), indented(frame.Append(nil, frame.LSP, m.Body)))
		var e struct{ Code int }
		if m.Error != nil {
			_ = json.Unmarshal(m.Error, &e) // code 0 if it is no error object; the check tells
		}
		if !s.check(json.RawMessage(m.Result), e.Code) {
			return i, fmt.Errorf("request %d was answered with %s", i+1, m.Body)
		}
	}
	return len(steps), nil
}

// indented shows a frame on a screen: its header lines, the blank one, its
// body.
func indented(raw []byte) string {
	return "    " + strings.ReplaceAll(string(raw), "\r\n", "\n    ")
}
