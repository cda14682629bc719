package acpagent

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// answering is a client with the same answer to each request.
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

var everything = func() (can acp.ClientCapabilities) {
	can.Elicitation.Form, can.Elicitation.URL = acp.Supported, acp.Supported
	return can
}()

func TestAnswersBecomeDecisions(t *testing.T) {
	tool := hubclient.Approval{Approval: protocol.Approval{ApprovalID: "q", Type: domain.FunctionCall, ToolName: "Bash", Options: []domain.Option{{ID: "y", Name: "Yes", Kind: "allow_once"}, {ID: "n", Kind: "reject_once"}}}}
	bare := hubclient.Approval{Approval: protocol.Approval{ApprovalID: "q", Type: domain.FunctionCall, ToolName: "Bash"}}
	person := hubclient.Approval{Approval: protocol.Approval{ApprovalID: "q", Type: domain.HumanContact, Title: "Which?", Options: []domain.Option{{ID: "r", Name: "red"}}}}
	words := hubclient.Approval{Approval: protocol.Approval{ApprovalID: "q", Type: domain.HumanContact, Title: "What?"}}
	form := hubclient.Approval{Approval: protocol.Approval{ApprovalID: "q", Type: domain.HumanContact}, Elicitation: protocol.Elicitation{Mode: domain.ElicitForm, Schema: json.RawMessage(`{"type":"object"}`)}}
	link := hubclient.Approval{Approval: protocol.Approval{ApprovalID: "q", Type: domain.HumanContact}, Elicitation: protocol.Elicitation{Mode: domain.ElicitURL, URL: "https://x"}}
	chose := func(id string) string { return `{"outcome":{"outcome":"selected","optionId":"` + id + `"}}` }
	for _, c := range []struct {
		q      hubclient.Approval
		answer string
		want   *protocol.DecisionParams
	}{
		{tool, chose("y"), &protocol.DecisionParams{ApprovalID: "q", Decision: "approve", Option: "y"}},
		{tool, chose("n"), &protocol.DecisionParams{ApprovalID: "q", Decision: "deny", Option: "n", Comment: "n"}},
		{tool, `{"outcome":{"outcome":"cancelled"}}`, nil},
		{bare, chose("duet-allow"), &protocol.DecisionParams{ApprovalID: "q", Decision: "approve"}},
		{bare, chose("duet-reject"), &protocol.DecisionParams{ApprovalID: "q", Decision: "deny", Comment: "Reject"}},
		{person, chose("r"), &protocol.DecisionParams{ApprovalID: "q", Decision: "respond", Option: "r", Comment: "red"}},
		{words, `{"action":"accept","content":{"answer":"this"}}`, &protocol.DecisionParams{ApprovalID: "q", Decision: "respond", Comment: "this"}},
		{words, `{"action":"accept","content":{}}`, nil},
		{words, `{"action":"cancel"}`, nil},
		{form, `{"action":"accept","content":{"a":1}}`, &protocol.DecisionParams{ApprovalID: "q", Decision: "respond", Comment: "agreed", Content: json.RawMessage(`{"a":1}`)}},
		{form, `{"action":"decline"}`, &protocol.DecisionParams{ApprovalID: "q", Decision: "deny", Comment: "declined"}},
		{form, `{"action":"cancel"}`, &protocol.DecisionParams{ApprovalID: "q", Decision: "cancel"}},
		{link, `{"action":"accept"}`, &protocol.DecisionParams{ApprovalID: "q", Decision: "respond", Comment: "agreed"}},
	} {
		client := &answering{answer: c.answer}
		got, err := asker{Client: client, For: acp.Client{Can: everything}}.Ask(t.Context(), "s", c.q, acp.ToolCall{})
		require.NoError(t, err)
		assert.Equal(t, c.want, got, "%s: %s", client.params, c.answer)
	}
	_, err := asker{Client: &answering{answer: chose("yolo")}, For: acp.Client{Can: everything}}.Ask(t.Context(), "s", tool, acp.ToolCall{})
	assert.ErrorContains(t, err, `"yolo", which was not offered`)
}

// The client gets only the agent's options, each with a kind of the protocol.
func TestOfferedOptions(t *testing.T) {
	client := &answering{answer: `{"outcome":{"outcome":"cancelled"}}`}
	_, err := asker{Client: client, For: acp.Client{Can: everything}}.Ask(t.Context(), "s", hubclient.Approval{Approval: protocol.Approval{Options: []domain.Option{{ID: "a", Name: "A", Kind: "allow_always"}, {ID: "b", Kind: "odd"}}}}, acp.ToolCall{ToolCallID: "t"})
	require.NoError(t, err)
	assert.Equal(t, acp.MethodRequestPermission, client.method)
	assert.JSONEq(t, `{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[{"optionId":"a","name":"A","kind":"allow_always"},{"optionId":"b","name":"b","kind":"allow_once"}]}`, client.params)
}

func TestQuestionsThatTheClientCannotShow(t *testing.T) {
	var none acp.ClientCapabilities
	for _, c := range []struct {
		q    hubclient.Approval
		can  acp.ClientCapabilities
		fits bool
	}{
		{hubclient.Approval{Approval: protocol.Approval{Type: domain.FunctionCall}}, none, true},
		{hubclient.Approval{Approval: protocol.Approval{Type: domain.HumanContact}}, none, false},
		{hubclient.Approval{Approval: protocol.Approval{Type: domain.HumanContact}}, everything, true},
		{hubclient.Approval{Approval: protocol.Approval{Type: domain.HumanContact, Options: []domain.Option{{ID: "a"}}}}, none, true},
		{hubclient.Approval{Elicitation: protocol.Elicitation{Mode: domain.ElicitForm}}, none, false},
		{hubclient.Approval{Elicitation: protocol.Elicitation{Mode: domain.ElicitURL}}, none, false},
		{hubclient.Approval{Elicitation: protocol.Elicitation{Mode: domain.ElicitURL}}, everything, true},
	} {
		assert.Equal(t, c.fits, asker{For: acp.Client{Can: c.can}}.Fits(c.q), "%+v", c.q)
	}
}

// /inbox shows a question as text to a client without a form for it. A change is a diff, a plan its
// text, and an address a link.
func TestDescribed(t *testing.T) {
	input := json.RawMessage(`{"a":1}`)
	options := []domain.Option{{ID: "y", Name: "Yes"}, {ID: "n"}}
	for want, q := range map[string]hubclient.Approval{
		"T\n\n````diff\n-```\n+b\n````\n\n1. Yes\n2. n\n": {Approval: protocol.Approval{Title: "T", ToolInput: input, Diff: "-```\n+b\n", Options: options}},
		"T\n\n1. do it\n\n1. Yes\n2. n\n":                 {Approval: protocol.Approval{Title: "T", ToolInput: input, Plan: "1. do it", Options: options}},
		"Bash\n\n```json\n{\"a\":1}\n```\n\n":             {Approval: protocol.Approval{ToolName: "Bash", ToolInput: input}},
		"T\n\nYes means that you open https://x\n\n":      {Approval: protocol.Approval{Title: "T"}, Elicitation: protocol.Elicitation{Mode: domain.ElicitURL, URL: "https://x"}},
	} {
		assert.Equal(t, want, described(q))
	}
}

func TestTextAnswers(t *testing.T) {
	tool := hubclient.Approval{Approval: protocol.Approval{ApprovalID: "q", Type: domain.FunctionCall, Options: []domain.Option{{ID: "y", Name: "Go on", Kind: "allow_once"}, {ID: "n", Name: "Stop", Kind: "reject_once"}}}}
	person := hubclient.Approval{Approval: protocol.Approval{ApprovalID: "q", Type: domain.HumanContact}}
	for _, c := range []struct {
		q     hubclient.Approval
		words string
		want  protocol.DecisionParams
		ok    bool
	}{
		{tool, "yes", protocol.DecisionParams{Decision: "approve"}, true},
		{tool, "No", protocol.DecisionParams{Decision: "deny", Comment: "denied"}, true},
		{tool, "1", protocol.DecisionParams{Decision: "approve", Option: "y"}, true},
		{tool, "stop", protocol.DecisionParams{Decision: "deny", Option: "n", Comment: "Stop"}, true},
		{tool, "3", protocol.DecisionParams{Decision: "approve"}, false},
		{tool, "perhaps", protocol.DecisionParams{Decision: "approve"}, false},
		{person, "whatever I say", protocol.DecisionParams{Decision: "respond", Comment: "whatever I say"}, true},
		{hubclient.Approval{Approval: protocol.Approval{ApprovalID: "q"}, Elicitation: protocol.Elicitation{Mode: domain.ElicitForm}}, "no", protocol.DecisionParams{Decision: "deny", Comment: "declined"}, true},
		{hubclient.Approval{Approval: protocol.Approval{ApprovalID: "q"}, Elicitation: protocol.Elicitation{Mode: domain.ElicitForm}}, "yes", protocol.DecisionParams{Decision: "deny", Comment: "declined"}, false},
	} {
		got, ok := answerTo(c.q, c.words)
		c.want.ApprovalID = "q"
		assert.Equal(t, c.ok, ok, c.words)
		if ok {
			assert.Equal(t, c.want, got, c.words)
		}
	}
}

func TestPermissions(t *testing.T) {
	about := acp.ToolCall{ToolCallID: "c", Name: "Bash"}
	const options = `"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]`
	for _, c := range []struct {
		q    hubclient.Approval
		want string
	}{
		{hubclient.Approval{Approval: protocol.Approval{Type: domain.FunctionCall, ToolUseID: "c", Title: "T", Details: "Because", Reopened: "Again"}}, `{"sessionId":"s","title":"T","description":"Because\n\nAgain",` + options + `,"subject":{"type":"tool_call","toolCall":{"toolCallId":"c","name":"Bash"}}}`},
		{hubclient.Approval{Approval: protocol.Approval{Type: domain.HumanContact, Subject: "Paint"}}, `{"sessionId":"s","title":"Paint",` + options + `}`},
	} {
		asked := permission("s", c.q, about, []acp.PermissionOption{{OptionID: "y", Name: "Yes", Kind: "allow_once"}})
		got, err := json.Marshal(clientWithStates().Question(asked))
		require.NoError(t, err)
		assert.JSONEq(t, c.want, string(got))
	}
}
