// Package mcpprobe asks servers of the Model Context Protocol whether they work
// (https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle). It
// says no more to them than initialize, which is a request of JSON-RPC, a line
// each; all else is between them and agents.
package mcpprobe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

// protocolVersion is the version that servers are asked for; one that knows
// another answers with that.
const protocolVersion = "2025-06-18"

// A proxyFor says which proxy a request goes through; nil: none.
type proxyFor func(*http.Request) (*url.URL, error)

// A Problem is why a server does not work, and what to do about it.
type Problem struct {
	Cause, Todo string
	NoProgram   bool // its program is not there, so it was not started
}

// Of is a sentence on the server of a name.
func (p *Problem) Of(name string) string {
	if did, ok := strings.CutPrefix(p.Cause, "it "); ok {
		return "the MCP server " + name + " " + did
	}
	return "the MCP server " + name + " does not work: " + p.Cause
}

// Check looks whether a server works: whether a program is there, starts, and
// answers initialize; whether something takes connections at an address. A
// program is started in dir with the agent's environment, and ended. Check
// returns in words what was found, or a Problem; at the latest, but for the
// program's end, when ctx ends.
func Check(ctx context.Context, s catalog.MCPServer, dir string, agent process.Environment) (found string, problem *Problem) {
	if s.Type != "" && s.Type != "stdio" {
		return checkAddress(ctx, s.URL, http.ProxyFromEnvironment)
	}
	env := process.NewEnvironment(agent, s.Env)
	path, err := env.Find(s.Command, dir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "", &Problem{NoProgram: true, Cause: fmt.Sprintf("the program %q is no file that may be run", s.Command), Todo: "make it executable, or correct the server's command in the configuration"}
	case err != nil:
		return "", &Problem{NoProgram: true, Cause: fmt.Sprintf("the program %q was not found", s.Command), Todo: "install it, or correct the server's command in the configuration"}
	}
	return checkProgram(ctx, process.Spec{Path: path, Argv: append([]string{s.Command}, s.Args...), CWD: dir, Env: env, Stdin: true})
}

// checkAddress looks whether something takes connections at an address. Whom it
// lets in is between it and agents. What is behind a proxy is not judged: that the
// proxy is there says nothing of it.
func checkAddress(ctx context.Context, address string, proxy proxyFor) (found string, problem *Problem) {
	u, problem := webAddress(address)
	if problem != nil {
		return "", problem
	}
	host := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
	if between, err := proxy(&http.Request{URL: u}); between != nil || err != nil {
		return host + " is behind a proxy, and was not tried", nil
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return "", &Problem{Cause: "nothing takes connections there: " + err.Error(), Todo: "start the server, or correct its url in the configuration"}
	}
	conn.Close()
	return "takes connections at " + host, nil
}

// webAddress is the URL of a server.
func webAddress(address string) (*url.URL, *Problem) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &Problem{Cause: fmt.Sprintf("%q is no address of the web", public(address)), Todo: "correct the server's url in the configuration"}
	}
	return u, nil
}

// public is what is no URL, without what stands where a URL has its user and its query:
// these may be secret.
func public(address string) string {
	if end := strings.IndexAny(address, "?#"); end >= 0 {
		address = address[:end] + "…"
	}
	if at := strings.LastIndexByte(address, '@'); at >= 0 {
		begin := 0
		if scheme := strings.Index(address[:at], "//"); scheme >= 0 {
			begin = scheme + len("//")
		}
		address = address[:begin] + "…" + address[at:]
	}
	return address
}
