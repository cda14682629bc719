package protocol_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// TestEventData pins what clients get of each kind of event.
func TestEventData(t *testing.T) {
	var text strings.Builder
	for _, p := range testkit.Payloads() {
		sent := protocol.Data(domain.Event{Session: 12, Payload: p})
		decodeAgain(t, protocol.KindOf(p.Kind()), sent)
		data, err := json.MarshalIndent(sent, "", "\t")
		require.NoError(t, err)
		text.WriteString(protocol.KindOf(p.Kind()) + "\n" + string(data) + "\n\n")
	}
	none := protocol.AgentSessionOf(domain.AgentSession{Modes: &domain.Selection{}, Options: []domain.AgentOption{{ID: "o"}}})
	data, err := json.Marshal(none)
	require.NoError(t, err)
	text.WriteString(string(data) + "\n")
	testkit.GoldenBytes(t, "testdata/events.txt", []byte(text.String()))
}

// decodeAgain checks that an event's type has all members of the event's data.
func decodeAgain(t *testing.T, kind string, sent json.RawMessage) {
	t.Helper()
	e, err := protocol.DecodeEvent(kind, sent)
	require.NoError(t, err, kind)
	if kind == protocol.KindProgress || kind == protocol.KindAgentError { // an executor's report, as it came
		return
	}
	again, err := json.Marshal(e)
	require.NoError(t, err)
	assert.Equal(t, string(sent), string(again), kind)
}

func TestAnEventNamesItsTurn(t *testing.T) {
	encoded := func(e domain.Event, subscription string) string {
		b, err := json.Marshal(protocol.Native.Event(subscription, e, json.RawMessage(`{"a":1}`)))
		require.NoError(t, err)
		return string(b)
	}
	e := domain.Event{Seq: 5, Time: time.Unix(0, 0), Session: 12, Ref: domain.TurnRef{HumanLayerSession: "u", Number: 3}, Payload: domain.PlanChanged{}}
	assert.Equal(t, `{"jsonrpc":"2.0","method":"event","params":{"subscription_id":"s","seq":5,"kind":"plan","time":"1970-01-01T00:00:00Z",`+
		`"session":12,"turn":"12.3","turn_uuid":"u","data":{"a":1}}}`, encoded(e, "s"))
	assert.Equal(t, `{"jsonrpc":"2.0","method":"event","params":{"kind":"plan","time":"1970-01-01T00:00:00Z","data":{"a":1}}}`,
		encoded(domain.Event{Time: time.Unix(0, 0), Payload: domain.PlanChanged{}}, ""))
}

func TestEveryKindOfEventHasItsType(t *testing.T) {
	seen := make(map[string]bool)
	for _, k := range protocol.EventKinds {
		assert.False(t, seen[k.Name], k.Name)
		seen[k.Name] = true
		e, err := protocol.DecodeEvent(k.Name, json.RawMessage("{}"))
		require.NoError(t, err)
		assert.Equal(t, reflect.PointerTo(k.Data), reflect.TypeOf(e), k.Name)
	}
}

func TestDecodeEventKeepsWhatItCanRead(t *testing.T) {
	e, err := protocol.DecodeEvent(protocol.KindUsage, json.RawMessage(`{"input_tokens":3,"output_tokens":"x"}`))
	require.Error(t, err)
	assert.Equal(t, &protocol.UsageEvent{InputTokens: 3}, e)

	e, err = protocol.DecodeEvent("newer", json.RawMessage(`{"new":1}`))
	require.NoError(t, err)
	assert.Nil(t, e)

	e, err = protocol.DecodeEvent(protocol.KindAgentError, json.RawMessage(`{"code":"C","message":"m","more":1}`))
	require.NoError(t, err)
	assert.Equal(t, &protocol.AgentErrorEvent{Code: "C", Message: "m"}, e)
}

func TestKindsThatADaemonDoesNotHaveAreTold(t *testing.T) {
	kinds, unknown := protocol.Kinds([]string{protocol.KindPlan, "newer", protocol.KindSession})
	assert.Equal(t, []domain.EventKind{domain.EventPlan, domain.EventSettings, domain.EventNativeSession, domain.EventAgentMode}, kinds)
	assert.Equal(t, []string{"newer"}, unknown)
	kinds, _ = protocol.Kinds([]string{"newer"})
	assert.NotNil(t, kinds, "it does not select all")
	kinds, _ = protocol.Kinds(nil)
	assert.Nil(t, kinds)
}
