//go:build unix

package agentlink_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// agent returns an agent that SCRIPT defines: a shell case for each method, in which "answer
// JSON" and "tell METHOD JSON" send messages.
func agent(t *testing.T, cases string) agentlink.Launch {
	t.Helper()
	program := filepath.Join(t.TempDir(), "agent")
	script := `#!/bin/sh
answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
tell() { printf '{"jsonrpc":"2.0","method":"%s","params":%s}\n' "$1" "$2"; }
while read -r line; do
	id=${line#*'"id":'} id=${id%%,*}
	case $line in
	` + cases + `
	*) answer '"error":{"code":-32601,"message":"no such method"}' ;;
	esac
done
`
	testkit.Program(t, program, script)
	return agentlink.Launch{Name: "theirs", Command: []string{program}, Environment: map[string]string{"AGENT_STATE": t.TempDir()}}
}

const greeting = `*'"initialize"'*) answer '"result":{"protocolVersion":1,"agentInfo":{"name":"x","title":"Theirs","version":"1.2.3"},
"agentCapabilities":CAPABILITIES,"authMethods":METHODS}' ;;`

// greets returns the case of initialize, on one line.
func greets(capabilities, methods string) string {
	text := strings.NewReplacer("CAPABILITIES", capabilities, "METHODS", methods, "\n", "").Replace(greeting)
	return text + "\n"
}

const (
	opens   = `*'"session/new"'*) answer '"result":{"sessionId":"s"}' ;;` + "\n"
	refuses = `*'"session/new"'*) answer '"error":{"code":-32000,"message":"Authentication required"}' ;;` + "\n"
)

func check(t *testing.T, l agentlink.Launch) domain.AgentReport {
	t.Helper()
	report, err := agentlink.CheckSignIn(t.Context(), l, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return report
}

func TestCheckSignIn(t *testing.T) {
	one := `[{"id":"a","name":"A"}]`
	status := `{"_meta":{"authStatus":{}},"sessionCapabilities":{"delete":{}}}`
	for name, c := range map[string]struct{ cases, state, account string }{
		"refused":               {greets(`{}`, one) + refuses, domain.SignedOut, "Authentication required"},
		"a session opens":       {greets(`{}`, one) + opens, domain.OpensSessions, ""},
		"there is no way":       {greets(`{}`, `[]`) + opens, domain.SignInNotNeeded, ""},
		"it says nobody":        {greets(status, one) + `*'"session/new"'*) answer '"result":{"sessionId":"s"}'; tell _auth/status_update '{"authStatus":{"kind":"none","label":"Not logged in"}}' ;;` + "\n", domain.SignedOut, "Not logged in"},
		"it says who, at first": {greets(status, one) + `*'"session/new"'*) tell _auth/status_update '{"authStatus":{"kind":"api_key","label":"API key","detail":"env"}}'; answer '"result":{"sessionId":"s"}' ;;` + "\n", domain.SignedIn, "API key env"},
	} {
		t.Run(name, func(t *testing.T) {
			report := check(t, agent(t, c.cases))
			assert.Equal(t, c.state, report.SignedIn)
			assert.Equal(t, c.account, report.Account)
			assert.Equal(t, "Theirs", report.Agent)
			assert.Equal(t, "1.2.3", report.Version)
		})
	}
}

func TestMethodRequirements(t *testing.T) {
	l := agent(t, greets(`{"auth":{"logout":{}}}`, `[{"id":"browser","name":"Browser","description":null},`+
		`{"id":"tui","name":"T","type":"terminal","args":["--login"],"env":{"A":"b"}},`+
		`{"id":"old","name":"O","_meta":{"terminal-auth":{"command":"theirs","args":["auth","login"]}}},`+
		`{"id":"key","name":"K","type":"env_var","vars":[{"name":"HAS"},{"name":"HAS_NOT"},{"name":"MAY","optional":true}]},`+
		`{"id":"odd","name":"Odd","args":"none"}, {"name":"no id"}]`)+refuses)
	l.Environment["HAS"] = "x"
	report := check(t, l)
	assert.True(t, report.Logout)
	assert.Equal(t, []domain.SignInMethod{
		{ID: "browser", Name: "Browser", Type: domain.SignInByAgent},
		{ID: "tui", Name: "T", Type: domain.SignInInTerminal, Command: []string{l.Command[0], "--login"}, Environment: map[string]string{"A": "b"}},
		{ID: "old", Name: "O", Type: domain.SignInInTerminal, Command: []string{"theirs", "auth", "login"}},
		{ID: "key", Name: "K", Type: domain.SignInByVariable, Variables: []string{"HAS", "HAS_NOT"}, Missing: []string{"HAS_NOT"}},
		{ID: "odd", Name: "Odd", Type: domain.SignInByAgent},
	}, report.Methods)

	quiet := slog.New(slog.DiscardHandler)
	err := agentlink.Authenticate(t.Context(), l, "key", quiet)
	require.ErrorAs(t, err, new(*agentlink.MissingError))
	assert.Contains(t, err.Error(), "HAS_NOT")
	err = agentlink.Authenticate(t.Context(), l, "tui", quiet)
	require.ErrorAs(t, err, new(*agentlink.TerminalError))
	err = agentlink.Authenticate(t.Context(), l, "", quiet)
	require.ErrorContains(t, err, "say which way: browser, tui, old, key, odd")
	err = agentlink.Authenticate(t.Context(), l, "other", quiet)
	require.ErrorContains(t, err, `there is no way "other"`)
}

func TestSigningInAndOut(t *testing.T) {
	l := agent(t, greets(`{"auth":{"logout":{}}}`, `[{"id":"browser","name":"Browser"}]`)+
		`*'"authenticate"'*'"methodId":"browser"'*) touch "$AGENT_STATE/in"; answer '"result":{}' ;;
	*'"logout"'*) rm "$AGENT_STATE/in"; answer '"result":{}' ;;
	*'"session/new"'*) if test -e "$AGENT_STATE/in"; then answer '"result":{"sessionId":"s"}'; else answer '"error":{"code":-32000,"message":"log in"}'; fi ;;
	`)
	quiet := slog.New(slog.DiscardHandler)
	assert.Equal(t, domain.SignedOut, check(t, l).SignedIn)
	require.NoError(t, agentlink.Authenticate(t.Context(), l, "", quiet))
	assert.Equal(t, domain.OpensSessions, check(t, l).SignedIn)
	require.NoError(t, agentlink.Logout(t.Context(), l, quiet))
	assert.Equal(t, domain.SignedOut, check(t, l).SignedIn)
}

func TestUnaskableAgents(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	ask := func(l agentlink.Launch) error {
		_, err := agentlink.CheckSignIn(t.Context(), l, quiet)
		return err
	}
	require.ErrorContains(t, ask(agentlink.Launch{Name: "theirs", Command: []string{"no-such-program"}}), "was not found")
	require.ErrorContains(t, ask(agent(t, `*) echo "no config" >&2; exit 3 ;;`+"\n")), "no config")
	require.ErrorContains(t, ask(agent(t, greets(`{}`, `[]`)+`*'"session/new"'*) answer '"error":{"code":-32603,"message":"Internal error","data":{"details":"the disk is full"}}' ;;`+"\n")), "the disk is full")
	require.ErrorContains(t, agentlink.Logout(t.Context(), agent(t, greets(`{}`, `[]`)), quiet), "does not offer to sign out")
}

// start_timeout also counts for an agent that is started for its sessions or its sign-in.
func TestAnAgentHasItsStartTimeout(t *testing.T) {
	l := agent(t, "*) continue ;;\n")
	l.StartTimeout = 20 * time.Millisecond
	_, err := agentlink.ListSessions(t.Context(), l, agentlink.Query{Limit: 1}, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "did not answer initialize within 20ms")
	c := &config.Config{}
	l, _ = agentlink.LaunchOf(t.Context(), c, config.Agent{Name: "a", StartTimeout: 5 * time.Minute}, func(string) string { return "" })
	assert.Equal(t, 5*time.Minute, l.StartTimeout)
}

func TestSilentAgentEndsWithItsCaller(t *testing.T) {
	l := agent(t, greets(`{}`, `[]`)+`*'"session/new"'*) echo $$ > "$AGENT_STATE/pid"; sleep 600 ;;`+"\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	file := filepath.Join(l.Environment["AGENT_STATE"], "pid")
	isAsked := func() bool { // for a session, which the agent never opens
		pid, _ := os.ReadFile(file)
		return strings.HasSuffix(string(pid), "\n")
	}
	go func() {
		defer cancel()
		assert.Eventually(t, isAsked, time.Minute, time.Millisecond)
	}()
	_, err := agentlink.CheckSignIn(ctx, l, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, context.Canceled)
	pid, err := os.ReadFile(file)
	require.NoError(t, err)
	_, err = os.Stat("/proc/" + strings.TrimSpace(string(pid)))
	assert.ErrorIs(t, err, os.ErrNotExist)
}
