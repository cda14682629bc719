package mcp

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

const (
	welcome = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"notes","version":"2"}}}`
	secret  = "Bearer guarded-secret"
)

func TestAServerAtAnAddressIsAskedToInitialize(t *testing.T) {
	for name, c := range map[string]struct {
		serve func(w http.ResponseWriter, r *http.Request)
		found string // otherwise cause
		cause string
	}{
		"well": {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, welcome) }, "notes 2 answers in", ""},
		"as events": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			io.WriteString(w, ": hello\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\ndata: "+welcome+"\n\n")
		}, "notes 2 answers in", ""},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/followed", http.StatusTemporaryRedirect)
		}, "redirection", ""},
		"lets nobody in": {func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, r.Header.Get("Authorization"), http.StatusUnauthorized)
		}, "", "it answers 401 Unauthorized"},
		"refuses": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such version"}}`)
		}, "", "it refuses to begin: no such version"},
		"is another":      {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, "", "not in the Model Context Protocol"},
		"says nothing":    {func(http.ResponseWriter, *http.Request) {}, "", "not in the Model Context Protocol"},
		"does not answer": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "", "it does not answer within"},
		"ends it":         {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "", "it does not answer: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, "/mcp", r.URL.Path, "no redirection is followed")
				assert.Equal(t, secret, r.Header.Get("Authorization"))
				body, err := io.ReadAll(r.Body)
				assert.NoError(t, err)
				assert.Contains(t, string(body), `"method":"initialize"`)
				c.serve(w, r)
			}))
			defer s.Close()
			limit := 30 * time.Second
			if name == "does not answer" {
				limit = 500 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			found, problem := try(ctx, catalog.MCPServer{Type: "http", URL: s.URL + "/mcp?key=guarded-too", Headers: map[string]string{"Authorization": secret}}, "", process.Environment{})
			if c.cause == "" {
				require.Nil(t, problem)
				assert.Contains(t, found, c.found)
				return
			}
			require.NotNil(t, problem, found)
			assert.Contains(t, problem.Cause, c.cause)
			assert.NotContains(t, problem.Cause, "guarded")
		})
	}
}

// A session that a server starts is ended.
func TestTheSessionOfAServerIsEnded(t *testing.T) {
	ended := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			ended <- r.Header.Get("Mcp-Session-Id") + " " + r.Header.Get("Authorization")
			return
		}
		w.Header().Set("Mcp-Session-Id", "session-1")
		io.WriteString(w, welcome)
	}))
	defer s.Close()
	_, problem := try(t.Context(), catalog.MCPServer{Type: "http", URL: s.URL, Headers: map[string]string{"Authorization": secret}}, "", process.Environment{})
	require.Nil(t, problem)
	assert.Equal(t, "session-1 "+secret, <-ended)
}

func TestWhatCannotBeSentSaysSo(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	for _, server := range []catalog.MCPServer{
		{Type: "http", URL: s.URL, Headers: map[string]string{"X-Key": "guarded\nsecret"}},
		{Type: "http", URL: strings.Replace(s.URL, "http:", "https:", 1) + "/guarded"},
	} {
		_, problem := try(t.Context(), server, "", process.Environment{})
		require.NotNil(t, problem)
		assert.Contains(t, problem.Cause, "it does not answer: ")
		assert.NotContains(t, problem.Cause, "guarded")
	}
}

// A server that is only reachable by proxy is tested through it: the test dials nothing that an
// agent would not dial.
func TestAServerBehindAProxyIsAskedThroughIt(t *testing.T) {
	const behind = "http://mcp.invalid/mcp" // does not resolve
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, behind, r.RequestURI)
		io.WriteString(w, welcome)
	}))
	defer there.Close()
	through := func(address string) proxyFor {
		u, err := url.Parse(address)
		require.NoError(t, err)
		return http.ProxyURL(u)
	}

	found, problem := call(t.Context(), catalog.MCPServer{Type: "http", URL: behind}, through(there.URL))
	require.Nil(t, problem)
	assert.Contains(t, found, "notes 2 answers in")

	_, problem = call(t.Context(), catalog.MCPServer{Type: "http", URL: behind}, through("http://me:guarded@127.0.0.1:1"))
	require.NotNil(t, problem)
	assert.Contains(t, problem.Cause, "the proxy on the way to it takes no connections")
	assert.NotContains(t, problem.Cause, "guarded")
	assert.Contains(t, problem.Todo, "HTTPS_PROXY")

	found, problem = checkAddress(t.Context(), behind, through(there.URL))
	require.Nil(t, problem, "of what takes connections behind a proxy nothing is known")
	assert.Equal(t, "mcp.invalid:80 is behind a proxy, and was not tried", found)
}

func TestAnAddressWhereNobodyIs(t *testing.T) {
	_, problem := try(t.Context(), catalog.MCPServer{Type: "http", URL: "http://127.0.0.1:1/mcp?key=guarded"}, "", process.Environment{})
	require.NotNil(t, problem)
	assert.Contains(t, problem.Cause, "nothing takes connections there: ")
	assert.NotContains(t, problem.Cause, "guarded")
}

// The problem of an invalid address contains nothing that may be secret.
func TestWhatIsToldOfNoAddress(t *testing.T) {
	for address, shown := range map[string]string{
		"mailto:x": "mailto:x",
		"htp://me:guarded@mcp.test/mcp?key=guarded": "htp://…@mcp.test/mcp…",
		"mcp.test/mcp?key=guarded":                  "mcp.test/mcp…",
		"me:guarded@mcp.test/mcp#guarded":           "…@mcp.test/mcp…",
		"http://me:guarded@@mcp.test:x/":            "http://…@mcp.test:x/",
		"http://%zz?token=guarded&x=guarded":        "http://%zz…",
	} {
		_, problem := try(t.Context(), catalog.MCPServer{Type: "http", URL: address}, "", process.Environment{})
		require.NotNil(t, problem)
		assert.Equal(t, strconv.Quote(shown)+" is not a web address", strings.ReplaceAll(problem.Cause, `\u2026`, "…"))
	}
}
