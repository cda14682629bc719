package turn

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/client"
)

// A refusal is one sentence in terms of the command line, and names each list once.
func TestRefusalIsOneSentence(t *testing.T) {
	for _, c := range []struct{ message, data, want string }{
		{`Invalid params: there is no agent "x"; known are a, b`, `{"param":"agent","accepted":["a","b"]}`, `there is no agent "x"; known are a, b`},
		{`Invalid params: permission_mode: expected a mode, received "x"`, `{"param":"permission_mode","accepted":["plan","default"]}`, `--mode: expected a mode, received "x"; choose one of plan, default`},
		{`Invalid params: items[2].name: expected text, received 1`, `{"param":"items[2].name"}`, `items[2].name: expected text, received 1`},
		{`Invalid params: status: expected one of a, b, received "x"`, `{"param":"status","accepted":["a","b"]}`, `--status: expected one of a, b, received "x"`},
		{"Task not found: no task has the id", `{}`, "no task has the id"},
		{`Internal error: no session has the id "x"`, `{"kind":"session_not_found"}`, "no session has the id \"x\"; `duet-rpc session list` lists the newest"},
		{"approval not found: x", `{"kind":"approval_not_found"}`, "approval not found: x; `duet-rpc approvals --list` lists the open questions"},
		{"Internal error: gone", `null`, "gone"},
		{"Request cancelled", `{"kind":"cancelled"}`, "the daemon has gone before it answered: it was stopped, or has ended"},
		{"approval not found: x\ny", `"odd"`, "approval not found: x y"},
	} {
		assert.EqualError(t, InWords(&client.Error{Code: -32602, Message: c.message, Data: json.RawMessage(c.data)}), c.want)
	}
	refused := &client.Error{Code: -32602, Message: `Invalid params: pattern: expected a pattern that fits, received "x"`, Data: json.RawMessage(`{"param":"pattern"}`)}
	assert.EqualError(t, InDialogue(refused), `pattern: expected a pattern that fits, received "x"`, "a dialogue has no flags")
	other := errors.New("Internal error: of this process")
	assert.Equal(t, other, InWords(other))
}
