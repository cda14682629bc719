// Package mcpprobe asks servers of the Model Context Protocol whether they work
// (https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle). It
// says no more to them than initialize, which is a request of JSON-RPC, a line
// each; all else is between them and agents.
package mcpprobe

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

// protocolVersion is the version that servers are asked for; one that knows
// another answers with that.
const protocolVersion = "2025-06-18"

// A Problem is why a server does not work, and what to do about it.
type Problem struct{ Cause, Todo string }

// Check looks whether a server works: whether a program is there, starts, and
// answers initialize; whether something takes connections at an address. A
// program is started in dir with the agent's environment, and ended. Check
// returns in words what was found, or a Problem; at the latest, but for the
// program's end, when ctx ends.
func Check(ctx context.Context, s catalog.MCPServer, dir string, agent process.Environment) (found string, problem *Problem) {
	if s.Type != "" && s.Type != "stdio" {
		return checkAddress(ctx, s.URL)
	}
	env := process.NewEnvironment(agent, s.Env)
	path, err := env.Find(s.Command, dir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "", &Problem{fmt.Sprintf("the program %q is no file that may be run", s.Command), "make it executable, or correct the server's command in the configuration"}
	case err != nil:
		return "", &Problem{fmt.Sprintf("the program %q was not found", s.Command), "install it, or correct the server's command in the configuration"}
	}
	return checkProgram(ctx, &client.Process{Path: path, Args: s.Args, Dir: dir, Env: env.List()})
}

// checkProgram starts a program and asks it who it is.
func checkProgram(ctx context.Context, p *client.Process) (found string, problem *Problem) {
	stderr := &tail{}
	p.Stderr = stderr
	began := time.Now()
	c, err := client.Dial(ctx, p, client.WithFraming(frame.NDJSON), client.WithReconnect(false), client.WithFailFast())
	var answer struct {
		ProtocolVersion string
		ServerInfo      struct{ Name, Version string }
	}
	if err == nil {
		err = c.Call(ctx, "initialize", map[string]any{
			"protocolVersion": protocolVersion, "capabilities": struct{}{}, "clientInfo": map[string]string{"name": "duet-rpc doctor", "version": "1"},
		}, &answer)
	}
	took := time.Since(began)
	if c != nil {
		c.Close() // first: then all is read that it complained of
	}
	var refused *client.Error
	const todo = "run its command in a terminal to see what it needs: an argument, a variable (env), a login"
	switch {
	case errors.As(err, &refused):
		return "", &Problem{"it refuses to begin: " + refused.Message, todo}
	case ctx.Err() != nil:
		return "", &Problem{fmt.Sprintf("it starts, and does not answer within %v%s", took.Round(time.Second), stderr.said()), todo}
	case err != nil:
		return "", &Problem{"it ends, or says what is not the protocol, before it answers" + stderr.said(), todo}
	case answer.ProtocolVersion == "":
		return "", &Problem{"its answer is none of the Model Context Protocol", "correct the server's command in the configuration"}
	}
	return fmt.Sprintf("%s answers in %v", strings.TrimSpace(cmp.Or(answer.ServerInfo.Name, "it")+" "+answer.ServerInfo.Version), took.Round(time.Millisecond)), nil
}

// checkAddress looks whether something takes connections at an address. Whom it
// lets in is between it and agents.
func checkAddress(ctx context.Context, address string) (found string, problem *Problem) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", &Problem{fmt.Sprintf("%q is no address of the web", address), "correct the server's url in the configuration"}
	}
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	host := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return "", &Problem{"nothing takes connections there: " + err.Error(), "start the server, or correct its url in the configuration"}
	}
	conn.Close()
	return "takes connections at " + host, nil
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex // guards text
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - 4096; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// said is the last line that is not blank, behind a colon.
func (t *tail) said() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(bytes.ToValidUTF8(t.text, []byte("\uFFFD"))), []byte("\n"))
	if last := bytes.TrimSpace(lines[len(lines)-1]); len(last) > 0 {
		return ": " + string(last)
	}
	return ""
}
