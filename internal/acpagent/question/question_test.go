package question

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/acpagent/hubwire"
	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
	_ "github.com/duet-rpc/duet-rpc/internal/golden" // for go test ./... -update
)

// answering is a client that answers each request alike.
type answering struct {
	answer string
	method string
	params string
}

func (c *answering) Call(_ context.Context, method string, params, result any) error {
	raw, err := json.Marshal(params)
	c.method, c.params = method, string(raw)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(c.answer), result)
}

var everything = schema.ReadCapabilities(json.RawMessage(`{"elicitation":{"form":{},"url":{}}}`))

func TestAnswersBecomeDecisions(t *testing.T) {
	tool := hubwire.Approval{ID: "q", Type: hubwire.FunctionCall, Tool: "Bash", Options: []hubwire.ApprovalOption{{ID: "y", Name: "Yes", Kind: "allow_once"}, {ID: "n", Kind: "reject_once"}}}
	bare := hubwire.Approval{ID: "q", Type: hubwire.FunctionCall, Tool: "Bash"}
	person := hubwire.Approval{ID: "q", Type: hubwire.HumanContact, Title: "Which?", Options: []hubwire.ApprovalOption{{ID: "r", Name: "red"}}}
	words := hubwire.Approval{ID: "q", Type: hubwire.HumanContact, Title: "What?"}
	form := hubwire.Approval{ID: "q", Type: hubwire.HumanContact, Mode: hubwire.ModeForm, Schema: json.RawMessage(`{"type":"object"}`)}
	link := hubwire.Approval{ID: "q", Type: hubwire.HumanContact, Mode: hubwire.ModeURL, URL: "https://x"}
	chose := func(id string) string { return `{"outcome":{"outcome":"selected","optionId":"` + id + `"}}` }
	for _, c := range []struct {
		q      hubwire.Approval
		answer string
		want   *hubwire.Decision
	}{
		{tool, chose("y"), &hubwire.Decision{ID: "q", Decision: "approve", Option: "y"}},
		{tool, chose("n"), &hubwire.Decision{ID: "q", Decision: "deny", Option: "n", Comment: "n"}},
		{tool, `{"outcome":{"outcome":"cancelled"}}`, nil},
		{bare, chose("duet-allow"), &hubwire.Decision{ID: "q", Decision: "approve"}},
		{bare, chose("duet-reject"), &hubwire.Decision{ID: "q", Decision: "deny", Comment: "Reject"}},
		{person, chose("r"), &hubwire.Decision{ID: "q", Decision: "respond", Option: "r", Comment: "red"}},
		{words, `{"action":"accept","content":{"answer":"this"}}`, &hubwire.Decision{ID: "q", Decision: "respond", Comment: "this"}},
		{words, `{"action":"accept","content":{}}`, nil},
		{words, `{"action":"cancel"}`, nil},
		{form, `{"action":"accept","content":{"a":1}}`, &hubwire.Decision{ID: "q", Decision: "respond", Comment: "agreed", Content: json.RawMessage(`{"a":1}`)}},
		{form, `{"action":"decline"}`, &hubwire.Decision{ID: "q", Decision: "deny", Comment: "declined"}},
		{form, `{"action":"cancel"}`, &hubwire.Decision{ID: "q", Decision: "cancel"}},
		{link, `{"action":"accept"}`, &hubwire.Decision{ID: "q", Decision: "respond", Comment: "agreed"}},
	} {
		client := &answering{answer: c.answer}
		got, err := Asker{Client: client, Can: everything}.Ask(t.Context(), "s", c.q, schema.ToolCall{})
		require.NoError(t, err)
		assert.Equal(t, c.want, got, "%s: %s", client.params, c.answer)
	}
	_, err := Asker{Client: &answering{answer: chose("yolo")}, Can: everything}.Ask(t.Context(), "s", tool, schema.ToolCall{})
	assert.ErrorContains(t, err, `"yolo", which was not offered`)
}

// Only what the agent offers is offered, each of a kind that clients know.
func TestWhatIsOffered(t *testing.T) {
	client := &answering{answer: `{"outcome":{"outcome":"cancelled"}}`}
	_, err := Asker{Client: client, Can: everything}.Ask(t.Context(), "s", hubwire.Approval{Options: []hubwire.ApprovalOption{{ID: "a", Name: "A", Kind: "allow_always"}, {ID: "b", Kind: "odd"}}}, schema.ToolCall{ToolCallID: "t"})
	require.NoError(t, err)
	assert.Equal(t, schema.RequestPermission, client.method)
	assert.JSONEq(t, `{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[{"optionId":"a","name":"A","kind":"allow_always"},{"optionId":"b","name":"b","kind":"allow_once"}]}`, client.params)
}

func TestWhatAClientCannotShow(t *testing.T) {
	var none schema.ClientCapabilities
	for _, c := range []struct {
		q    hubwire.Approval
		can  schema.ClientCapabilities
		fits bool
	}{
		{hubwire.Approval{Type: hubwire.FunctionCall}, none, true},
		{hubwire.Approval{Type: hubwire.HumanContact}, none, false},
		{hubwire.Approval{Type: hubwire.HumanContact}, everything, true},
		{hubwire.Approval{Type: hubwire.HumanContact, Options: []hubwire.ApprovalOption{{ID: "a"}}}, none, true},
		{hubwire.Approval{Mode: hubwire.ModeForm}, none, false},
		{hubwire.Approval{Mode: hubwire.ModeURL}, none, false},
		{hubwire.Approval{Mode: hubwire.ModeURL}, everything, true},
	} {
		assert.Equal(t, c.fits, Asker{Can: c.can}.Fits(c.q), "%+v", c.q)
	}
}

// What a client cannot show is answered in words, by /inbox.
func TestAnswersInWords(t *testing.T) {
	tool := hubwire.Approval{ID: "q", Type: hubwire.FunctionCall, Options: []hubwire.ApprovalOption{{ID: "y", Name: "Go on", Kind: "allow_once"}, {ID: "n", Name: "Stop", Kind: "reject_once"}}}
	person := hubwire.Approval{ID: "q", Type: hubwire.HumanContact}
	for _, c := range []struct {
		q     hubwire.Approval
		words string
		want  hubwire.Decision
		ok    bool
	}{
		{tool, "yes", hubwire.Decision{Decision: "approve"}, true},
		{tool, "No", hubwire.Decision{Decision: "deny", Comment: "denied"}, true},
		{tool, "1", hubwire.Decision{Decision: "approve", Option: "y"}, true},
		{tool, "stop", hubwire.Decision{Decision: "deny", Option: "n", Comment: "Stop"}, true},
		{tool, "3", hubwire.Decision{Decision: "approve"}, false},
		{tool, "perhaps", hubwire.Decision{Decision: "approve"}, false},
		{person, "whatever I say", hubwire.Decision{Decision: "respond", Comment: "whatever I say"}, true},
		{hubwire.Approval{ID: "q", Mode: hubwire.ModeForm}, "no", hubwire.Decision{Decision: "deny", Comment: "declined"}, true},
		{hubwire.Approval{ID: "q", Mode: hubwire.ModeForm}, "yes", hubwire.Decision{Decision: "deny", Comment: "declined"}, false},
	} {
		got, ok := Answer(c.q, c.words)
		c.want.ID = "q"
		assert.Equal(t, c.ok, ok, c.words)
		if ok {
			assert.Equal(t, c.want, got, c.words)
		}
	}
}
