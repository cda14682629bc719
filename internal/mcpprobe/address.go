package mcpprobe

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

// Try is [Check], but that it asks a server of type http, too, with the headers that it
// is to get. It follows no redirection, and does not judge one.
func Try(ctx context.Context, s catalog.MCPServer, dir string, agent process.Environment) (found string, problem *Problem) {
	if s.Type != "http" {
		return Check(ctx, s, dir, agent)
	}
	return call(ctx, s, http.ProxyFromEnvironment)
}

// call sends initialize to a server of type http, on the way that an agent's requests go.
func call(ctx context.Context, s catalog.MCPServer, proxy proxyFor) (found string, problem *Problem) {
	if _, problem := webAddress(s.URL); problem != nil {
		return "", problem
	}
	const todo = "start the server, or correct its url or its headers in the configuration"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(initialize))
	if err != nil {
		return "", &Problem{Cause: "its url or its headers cannot be sent", Todo: todo}
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
		return "", &Problem{Cause: fmt.Sprintf("it answers %d %s", response.StatusCode, http.StatusText(response.StatusCode)), Todo: todo}
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
	return "", &Problem{Cause: "it answered what is none of the Model Context Protocol", Todo: todo}
}

// unanswered says why there is no answer, without the address: it may hold a secret.
func unanswered(ctx context.Context, err error, took time.Duration, todo string) *Problem {
	if ctx.Err() != nil {
		return &Problem{Cause: fmt.Sprintf("it does not answer within %v", took.Round(time.Second)), Todo: todo}
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	cause := "it does not answer: "
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		switch failed.Op {
		case "dial":
			cause = "nothing takes connections there: "
		case "proxyconnect":
			cause, todo = "the proxy on the way to it takes no connections: ", "correct the variables that name the proxy (HTTPS_PROXY, HTTP_PROXY, NO_PROXY)"
		}
	}
	return &Problem{Cause: cause + cut(err.Error()), Todo: todo}
}

// answerIn is the answer in a response, which is JSON or a stream of events.
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

// endSession ends the session that a server has begun for initialize, if it has.
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
