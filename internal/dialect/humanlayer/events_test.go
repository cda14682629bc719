package humanlayer_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/dialect/humanlayer"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// TestEventData pins what HumanLayer's clients get of each kind of event.
func TestEventData(t *testing.T) {
	var text strings.Builder
	ref := domain.TurnRef{HumanLayerSession: "s", HumanLayerRun: "r", Task: 3}
	for _, p := range testkit.Payloads() {
		data, err := json.MarshalIndent(humanlayer.Data(domain.Event{Ref: ref, Payload: p}), "", "\t")
		require.NoError(t, err)
		text.WriteString(string(p.Kind()) + " " + humanlayer.TypeOf(p.Kind()) + "\n" + string(data) + "\n\n")
	}
	testkit.GoldenBytes(t, "testdata/events.txt", []byte(text.String()))
}

func TestEventsInBothFramings(t *testing.T) {
	e, data := domain.Event{Seq: 5, Time: time.Unix(0, 0), Payload: domain.PlanChanged{}}, json.RawMessage(`{"a":1}`)
	encoded := func(form *protocol.EventForm, subscription string) string {
		b, err := json.Marshal(form.Event(subscription, e, data))
		require.NoError(t, err)
		return string(b)
	}
	assert.Equal(t, `{"jsonrpc":"2.0","method":"event","params":{"subscription_id":"s","seq":5,"event":{"type":"plan","timestamp":"1970-01-01T00:00:00Z","data":{"a":1}}}}`,
		encoded(humanlayer.Framed, "s"))
	assert.Equal(t, `{"jsonrpc":"2.0","result":{"event":{"type":"plan","timestamp":"1970-01-01T00:00:00Z","seq":5,"data":{"a":1}}}}`,
		encoded(humanlayer.Lines, "s"))
	e.Seq = 0
	assert.Equal(t, `{"jsonrpc":"2.0","method":"event","params":{"event":{"type":"plan","timestamp":"1970-01-01T00:00:00Z","data":{"a":1}}}}`,
		encoded(humanlayer.Framed, ""))
}
