package handlers_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/frame"
)

func TestTheHistoryOfADatabaseIsTakenOver(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.NDJSON)
	assert.JSONEq(t, `{"conversations":2,"sessions":0,"items":0,"changes":0,"already_here":0,"mended":0,"left_out":0,"not_started":1,
		"database":"/p/.duet/taken-over-1/duet.db"}`, string(c.ask("daemon.takeHistory", `{"directory":"set-aside-1"}`)))
	for _, params := range []string{`{"directory":""}`, `{"directory":" "}`, `{}`, `{"directory":"set-aside-2"}`} {
		assert.Equal(t, -32602, c.fail("daemon.takeHistory", params).Code, params)
	}
}
