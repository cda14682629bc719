//go:build clients

package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// clientsOfAKind is how often each kind of client is started and ended.
const clientsOfAKind = 100

// Whatever ends a client, no process of it is left, and the daemon is the one of before.
func TestClientsLeaveNoProcessBehind(t *testing.T) {
	t.Parallel()
	s := newDaemonSite(t)
	first := s.start()
	daemon := s.requireDaemon(first)
	hello := map[string]string{
		"editor": framed(`{"jsonrpc":"2.0","id":1,"method":"task.stats"}`),
		"acp":    `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}` + "\n",
		"mcp":    `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n",
	}
	for kind, message := range hello {
		for i := range clientsOfAKind {
			l := s.launch()
			if kind != "editor" {
				l.first = []string{kind}
			}
			p := l.start(t)
			_, err := p.stdin.Write([]byte(message))
			require.NoError(t, err)
			_, err = p.stdout.Read(make([]byte, 1<<10))
			require.NoError(t, err, "%s %d", kind, i)
			if i%2 == 0 {
				require.NoError(t, p.stdin.Close())
			} else {
				require.NoError(t, p.cmd.Process.Kill())
			}
			<-p.ended
		}
	}
	for range clientsOfAKind {
		_, err := s.command("call", "task.stats")
		require.NoError(t, err)
	}
	require.Equal(t, daemon, hubOf(t, first))
	first.leave()
	require.Eventually(t, func() bool { return len(s.running()) == 1 }, watchdog/3, pollEvery, "%v", s.running())
	_, err := s.command("daemon", "stop")
	require.NoError(t, err)
	s.requireNobody("after the daemon was stopped")
}
