//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With DUET_RPC_DEBUG=1, or AIWG's AIWG_IPC_DEBUG=1, every message is in the
// log, whatever its level, without the secrets in it; also in that of a process
// which is attached, and between hub and executor.
func TestLogHasEveryMessageIfAsked(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"DUET_RPC_DEBUG", "AIWG_IPC_DEBUG"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.env = append(s.env, name+"=1", "DUET_RPC_LOG_LEVEL=error")
			hub := s.start()
			hub.subscribe()
			hub.awaitEnd(hub.launch("quiet", "").SessionID)
			attached := s.start()
			require.Equal(t, hubOf(t, hub), hubOf(t, attached))
			for _, c := range []*client{attached, hub} {
				_ = c.try("secret.provide", object{"request_id": "r", "secret": secret}, nil)
				_ = c.try("get_execution_context", object{"session_token": secret}, nil)
				c.leave()
				log := c.log.String()
				assert.Contains(t, log, `msg=received`)
				assert.Contains(t, log, `msg=sent`)
				assert.Regexp(t, `received.*\\"method\\":\\"secret\.provide\\"`, log)
				assert.Regexp(t, `\\"request_id\\":\\"r\\".*\(redacted\)|\(redacted\).*\\"request_id\\":\\"r\\"`, log)
				assert.NotContains(t, log, secret)
			}
			daemon, err := os.ReadFile(filepath.Join(s.state(), "daemon.log"))
			require.NoError(t, err)
			assert.Regexp(t, `msg=sent peer="executor \d+".*execute_prompt`, string(daemon))
			assert.NotContains(t, string(daemon), secret)
			assert.NotRegexp(t, `session_token\\":\\"[^(]`, hub.log.String(), "of executors")
		})
	}
	s := newSite(t)
	c := s.start()
	_ = hubOf(t, c)
	c.leave()
	assert.NotContains(t, c.log.String(), "msg=received", "unless asked")
}
