package demoagent_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/demoagent"
)

// wire is a client that writes bytes, for tests that the SDK's client cannot do.
type wire struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Reader
	ends chan error
}

func newWire(t *testing.T) *wire {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &wire{t: t, in: inW, out: bufio.NewReader(outR), ends: make(chan error, 1)}
	go func() {
		err := demoagent.Serve(t.Context(), inR, outW, demoagent.Options{})
		outW.Close()
		c.ends <- err
	}()
	t.Cleanup(func() { inW.Close(); outR.Close() })
	return c
}

func (c *wire) send(lines string) {
	_, err := io.WriteString(c.in, lines)
	require.NoError(c.t, err)
}

// reply returns the line that answers a request, and skips other lines.
func (c *wire) reply(id int) string {
	for {
		line, err := c.out.ReadString('\n')
		require.NoError(c.t, err)
		if strings.Contains(line, fmt.Sprintf(`"id":%d,`, id)) && !strings.Contains(line, `"method"`) {
			return line
		}
	}
}

func (c *wire) session(cwd string) string {
	dir, err := json.Marshal(cwd)
	require.NoError(c.t, err)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":` + string(dir) + `,"mcpServers":[]}}` + "\n")
	var reply struct{ Result struct{ SessionId string } }
	require.NoError(c.t, json.Unmarshal([]byte(c.reply(1)), &reply))
	return reply.Result.SessionId
}

func (c *wire) close() {
	c.in.Close()
	require.NoError(c.t, <-c.ends)
}
