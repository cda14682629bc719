package protocol

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func TestStatesInTheWordsOfHumanLayer(t *testing.T) {
	for state, want := range map[domain.State]string{
		domain.New: "", domain.Queued: "starting", domain.Starting: "starting", domain.Running: "running", domain.WaitingInput: "waiting_input",
		domain.Interrupting: "interrupting", domain.Completed: "completed", domain.Failed: "failed", domain.TimedOut: "failed",
		domain.Cancelled: "interrupted", domain.Interrupted: "interrupted", domain.Draft: "draft", domain.Discarded: "discarded",
	} {
		assert.Equal(t, want, StatusOf(state))
	}
}

func TestEventsInBothDialects(t *testing.T) {
	e, data := domain.Event{Seq: 5, Time: time.Unix(0, 0), Payload: domain.PlanChanged{}}, json.RawMessage(`{"a":1}`)
	encoded := func(v any) string {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		return string(b)
	}
	assert.Equal(t, `{"jsonrpc":"2.0","method":"event","params":{"subscription_id":"s","seq":5,"event":{"type":"plan","timestamp":"1970-01-01T00:00:00Z","data":{"a":1}}}}`,
		encoded(LSP.Event("s", e, data)))
	assert.Equal(t, `{"jsonrpc":"2.0","result":{"event":{"type":"plan","timestamp":"1970-01-01T00:00:00Z","seq":5,"data":{"a":1}}}}`,
		encoded(HumanLayer.Event("s", e, data)))
	e.Seq = 0
	assert.Equal(t, `{"jsonrpc":"2.0","method":"event","params":{"event":{"type":"plan","timestamp":"1970-01-01T00:00:00Z","data":{"a":1}}}}`,
		encoded(LSP.Event("", e, data)))
}

func TestTextsAreCutWhereTheySaySo(t *testing.T) {
	assert.Equal(t, "abc", Cut("abc", 3))
	assert.Equal(t, "ab… [1 of 3 bytes left out]", Cut("abc", 2))
	assert.Equal(t, "… [2 of 2 bytes left out]", Cut("é", 1), "never inside a character")
}
