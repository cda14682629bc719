package mcp

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

// This file tests MCP servers
// (https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle). It sends only
// initialize, a JSON-RPC request on one line; the rest is between server and agent.

// try is [CheckServers], but also sends initialize to an http server, with its headers. It neither
// follows nor judges a redirect.
func try(ctx context.Context, s catalog.MCPServer, dir string, agent process.Environment) (found string, problem *ServerProblem) {
	if s.Type != "http" {
		return CheckServers(ctx, s, dir, agent)
	}
	return call(ctx, s, http.ProxyFromEnvironment)
}

// call sends initialize to an http server, by the same route as an agent's requests.
func call(ctx context.Context, s catalog.MCPServer, proxy proxyFor) (found string, problem *ServerProblem) {
	if _, problem := webAddress(s.URL); problem != nil {
		return "", problem
	}
	const todo = "start the server, or correct its url or its headers in the configuration"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(initialize))
	if err != nil {
		return "", &ServerProblem{Cause: "its url or its headers cannot be sent", Todo: todo}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range s.Headers {
		request.Header.Set(name, value)
	}
	transport := &http.Transport{Proxy: proxy, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	one := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	began := time.Now()
	response, err := one.Do(request)
	if err != nil {
		return "", unanswered(ctx, err, time.Since(began), todo)
	}
	defer response.Body.Close()
	defer endSession(ctx, one, request, response)
	switch {
	case response.StatusCode >= 400:
		return "", &ServerProblem{Cause: fmt.Sprintf("it answers %d %s", response.StatusCode, http.StatusText(response.StatusCode)), Todo: todo}
	case response.StatusCode >= 300:
		return "answers with a redirection", nil
	}
	said, ok := answerIn(response)
	switch {
	case ok:
		return said.judge(time.Since(began))
	case ctx.Err() != nil:
		return "", unanswered(ctx, ctx.Err(), time.Since(began), todo)
	}
	return "", &ServerProblem{Cause: "its answer is not in the Model Context Protocol", Todo: todo}
}

// unanswered explains a missing answer, without the address, which may contain a secret.
func unanswered(ctx context.Context, err error, took time.Duration, todo string) *ServerProblem {
	if ctx.Err() != nil {
		return &ServerProblem{Cause: fmt.Sprintf("it does not answer within %v", took.Round(time.Second)), Todo: todo}
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	cause := "it does not answer: "
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		switch failed.Op {
		case "dial":
			cause = "nothing takes connections there: "
		case "proxyconnect":
			cause, todo = "the proxy on the way to it takes no connections: ", "correct the variables that name the proxy (HTTPS_PROXY, "+
				"HTTP_PROXY, NO_PROXY)"
		}
	}
	return &ServerProblem{Cause: cause + cut(err.Error()), Todo: todo}
}

// answerIn reads the answer from a response, which is JSON or an event stream.
func answerIn(r *http.Response) (a answer, found bool) {
	body := io.LimitReader(r.Body, lineMost)
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
		return a, json.NewDecoder(body).Decode(&a) == nil && a.isOurs()
	}
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, lineMost)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if ok && json.Unmarshal([]byte(data), &a) == nil && a.isOurs() {
			return a, true
		}
		a = answer{}
	}
	return a, false
}

// endSession ends the session that a server started for initialize, if any.
func endSession(ctx context.Context, c *http.Client, begun *http.Request, r *http.Response) {
	id := r.Header.Get("Mcp-Session-Id")
	if id == "" {
		return
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, begun.URL.String(), nil)
	if err != nil {
		return
	}
	request.Header = begun.Header.Clone()
	request.Header.Set("Mcp-Session-Id", id)
	if response, err := c.Do(request); err == nil {
		response.Body.Close()
	}
}

// protocolVersion is the requested version; a server that has only another answers with that.
const protocolVersion = "2025-06-18"

// proxyFor returns the proxy of a request; nil means none.
type proxyFor func(*http.Request) (*url.URL, error)

// ServerProblem is why a server fails, with the remedy.
type ServerProblem struct {
	Cause, Todo string
	NoProgram   bool // its program does not exist, so it was not started
}

// Of returns a sentence about the named server.
func (p *ServerProblem) Of(name string) string {
	if did, ok := strings.CutPrefix(p.Cause, "it "); ok {
		return "the MCP server " + name + " " + did
	}
	return "the MCP server " + name + " does not work: " + p.Cause
}

// CheckServers tests a server. A program must exist, start and answer initialize; an address must
// accept connections. The program runs in dir with the agent's environment, and is ended.
// CheckServers returns a description, or a problem. It returns at the latest when ctx ends, plus
// the time to end the program.
func CheckServers(ctx context.Context, s catalog.MCPServer, dir string, agent process.Environment) (found string, problem *ServerProblem) {
	if s.Type != "" && s.Type != "stdio" {
		return checkAddress(ctx, s.URL, http.ProxyFromEnvironment)
	}
	env := process.NewEnvironment(agent, s.Env)
	path, err := env.Find(s.Command, dir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "", &ServerProblem{NoProgram: true, Cause: fmt.Sprintf(
			"the program %q is not an executable file", s.Command,
		), Todo: "make it executable, or correct the server's command in the configuration"}
	case err != nil:
		return "", &ServerProblem{NoProgram: true, Cause: fmt.Sprintf(
			"the program %q was not found", s.Command,
		), Todo: "install it, or correct the server's command in the configuration"}
	}
	return checkProgram(ctx, process.Spec{Path: path, Argv: append([]string{s.Command}, s.Args...), CWD: dir, Env: env, Stdin: true})
}

// checkAddress tests whether an address accepts connections. Authorization is between server and
// agent. A server behind a proxy is not judged, because a reachable proxy says nothing about it.
func checkAddress(ctx context.Context, address string, proxy proxyFor) (found string, problem *ServerProblem) {
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
		return "", &ServerProblem{
			Cause: "nothing takes connections there: " + err.Error(), Todo: "start the server, or correct its url in the configuration",
		}
	}
	conn.Close()
	return "takes connections at " + host, nil
}

// webAddress parses the URL of a server.
func webAddress(address string) (*url.URL, *ServerProblem) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &ServerProblem{
			Cause: fmt.Sprintf("%q is not a web address", public(address)), Todo: "correct the server's url in the configuration",
		}
	}
	return u, nil
}

// public removes the user and the query, which may be secret, from an invalid URL.
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

const (
	outputMost   = 16 << 20        // bytes read from a server
	lineMost     = 4 << 20         // bytes of a message
	textMost     = 300             // bytes of its complaint
	probeEndTime = time.Second     // for a program that has answered to end by itself
	exitTime     = 5 * time.Second // for a program with closed output to exit
)

const runIt = "run its command in a terminal to see what it needs: an argument, a variable (env), a login"

// initialize is the only request that a server gets.
var initialize = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"duet-rpc","version":"1"}}}`, protocolVersion)

// answer is the examined part of a server's message.
type answer struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// isOurs reports whether it answers initialize.
func (a answer) isOurs() bool {
	return a.Method == "" && string(a.ID) == "1" && (len(a.Result) > 0 || a.Error != nil)
}

// judge describes the server that answered, or the problem with its answer.
func (a answer) judge(took time.Duration) (found string, problem *ServerProblem) {
	var result struct {
		ProtocolVersion string                         `json:"protocolVersion"`
		ServerInfo      struct{ Name, Version string } `json:"serverInfo"`
	}
	switch {
	case a.Error != nil:
		return "", &ServerProblem{Cause: "it refuses to begin: " + cut(a.Error.Message), Todo: runIt}
	case json.Unmarshal(a.Result, &result) != nil || result.ProtocolVersion == "":
		return "", &ServerProblem{
			Cause: "its answer is not in the Model Context Protocol", Todo: "correct the server's command in the configuration",
		}
	}
	return fmt.Sprintf(
		"%s answers in %v", strings.TrimSpace(cmp.Or(result.ServerInfo.Name, "it")+" "+result.ServerInfo.Version), took.Round(time.Millisecond),
	), nil
}

// checkProgram starts a program, sends initialize, and ends it. It kills the program when ctx ends.
func checkProgram(ctx context.Context, spec process.Spec) (found string, problem *ServerProblem) {
	runner := process.NewRunner(ctx, slog.New(slog.DiscardHandler), process.Grace{})
	defer runner.Close()
	p, err := runner.Start(spec)
	if err != nil {
		return "", &ServerProblem{Cause: "it could not be started: " + err.Error(), Todo: runIt}
	}
	defer context.AfterFunc(ctx, p.Kill)()
	began := time.Now()
	_, _ = p.Write([]byte(initialize + "\n")) // a failure shows as a missing answer below
	out, stop := p.Output()
	said, answered := firstAnswer(out)
	took := time.Since(began)
	late := ctx.Err() != nil
	ended := !answered && p.Wait(exitTime) && !late
	p.CloseInput()
	if !p.Wait(probeEndTime) {
		p.Terminate()
	}
	stop()
	switch {
	case answered:
		return said.judge(took)
	case late:
		return "", &ServerProblem{Cause: fmt.Sprintf("it does not answer within %v%s", took.Round(time.Second), lastWords(p)), Todo: runIt}
	case !ended:
		return "", &ServerProblem{Cause: "it closed its output before it answered" + lastWords(p), Todo: runIt}
	}
	how := ""
	if code, signal := p.ExitStatus(); signal != "" {
		how = "by " + signal
	} else {
		how = fmt.Sprintf("with status %d", code)
	}
	return "", &ServerProblem{Cause: "it ended " + how + " before it answered" + lastWords(p), Todo: runIt}
}

// firstAnswer returns the first message that answers initialize. It skips other output, as most
// clients do.
func firstAnswer(out io.Reader) (a answer, found bool) {
	lines := bufio.NewScanner(io.LimitReader(out, outputMost))
	lines.Buffer(nil, lineMost)
	for lines.Scan() {
		var one answer
		if json.Unmarshal(lines.Bytes(), &one) == nil && one.isOurs() {
			return one, true
		}
	}
	return answer{}, false
}

// lastWords returns the last line of a program's error output, after a colon.
func lastWords(p *process.Process) string {
	if said := p.LastComplaint(); said != "" {
		return ": " + cut(said)
	}
	return ""
}

// cut truncates third-party text.
func cut(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > textMost {
		text = strings.ToValidUTF8(text[:textMost], "") + "…"
	}
	return text
}
