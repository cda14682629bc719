package hub

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

const portForm = `{"type":"object","properties":{"port":{"type":"integer","minimum":1024},"log":{"type":"boolean"}},"required":["port"]}`

// elicits requests a form, or what else e contains, and says the answer.
func elicits(e catalog.Elicitation) play {
	return func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		r, err := x.request(ctx, catalog.RequestPermissionParams{SessionToken: x.p.SessionToken, Title: "Where to?", Elicitation: &e})
		if err != nil {
			return hang(ctx, x)
		}
		x.say(r.Reason + string(r.Content))
		return completed
	}
}

var (
	asForm = catalog.Elicitation{Mode: "form", Schema: json.RawMessage(portForm)}
	asURL  = catalog.Elicitation{Mode: "url", URL: "https://example.com/in", ID: "e1"}
)

func TestAFormIsAnsweredWithValuesThatFit(t *testing.T) {
	h := openHub(t, database(t), elicits(asForm))
	s := launchIn(t, h, "a", "p")
	a := pendingOf(t, h, 1)[0]
	assert.Equal(t, domain.HumanContact, a.Type)
	assert.Equal(t, domain.Elicitation{Mode: "form", Schema: json.RawMessage(portForm)}, a.Elicitation)
	for _, c := range []struct {
		d    approval.Decision
		want string
	}{
		{approval.Decision{Decision: "approve"}, `decision: expected one of respond, deny, cancel for a question of the mode form, received "approve"`},
		{approval.Decision{Decision: "respond", Comment: "8080"}, "content: expected an object with the form's values, received another value"},
		{approval.Decision{Decision: "respond", Content: json.RawMessage(`{"port":80}`)}, "content.port: expected a whole number of at least 1024, received 80"},
		{approval.Decision{Decision: "respond", Content: json.RawMessage(`{"log":true}`)}, "content.port: expected a whole number of at least 1024, received nothing"},
		{approval.Decision{Decision: "respond", Option: "x"}, `option: expected nothing: no options were offered, received "x"`},
		{approval.Decision{Decision: "respond", Content: json.RawMessage(`{"port":8080}`), Scope: "session"}, `scope: expected once: the answer is given once, received "session"`},
	} {
		c.d.ID = a.ID
		_, err := h.Approvals().Decide(context.Background(), c.d)
		require.EqualError(t, err, c.want)
		assert.Equal(t, domain.KindInvalid, kindOf(t, err))
	}
	got, err := h.Approvals().Decide(context.Background(), approval.Decision{ID: a.ID, Decision: "respond", Content: json.RawMessage(`{"port":8080,"log":false}`)})
	require.NoError(t, err)
	assert.Equal(t, []any{domain.ApprovalResponded, "port: 8080; log: no"}, []any{got.Status, got.Response})
	assert.Equal(t, `user_responded{"port":8080,"log":false}`, await(t, h, s).Result)
	assert.JSONEq(t, `{"port":8080,"log":false}`, string(approvalNow(t, h, a.ID).Content))
	assert.Equal(t, []string{"Where to? — responded: port: 8080; log: no"}, notes(t, h, s.UUID))
}

func TestAFormIsDeclinedOrDismissed(t *testing.T) {
	for decision, want := range map[string]string{"deny": "user_denied", "cancel": "cancelled"} {
		h := openHub(t, database(t), elicits(asForm))
		s := launchIn(t, h, "a", "p")
		a := pendingOf(t, h, 1)[0]
		decide(t, h, approval.Decision{ID: a.ID, Decision: decision, Comment: "not now"})
		assert.Equal(t, want, await(t, h, s).Result)
		assert.Equal(t, domain.DecidedByUser, approvalNow(t, h, a.ID).DecidedBy)
	}
}

func TestACancelIsForFormsAndAddressesAlone(t *testing.T) {
	h := openHub(t, database(t), askOnce)
	launchIn(t, h, "a", "p")
	a := pendingOf(t, h, 1)[0]
	_, err := h.Approvals().Decide(context.Background(), approval.Decision{ID: a.ID, Decision: "cancel"})
	assert.Equal(t, domain.KindInvalid, kindOf(t, err))
	_, err = h.Approvals().Decide(context.Background(), approval.Decision{ID: a.ID, Decision: "approve", Content: json.RawMessage(`{}`)})
	assert.EqualError(t, err, "content: expected nothing: the question has no form, received values of one")
}

func TestAnAddressIsAgreedToWithoutValues(t *testing.T) {
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		r, err := x.request(ctx, catalog.RequestPermissionParams{SessionToken: x.p.SessionToken, Title: "Sign in", Elicitation: &asURL})
		if err != nil {
			return hang(ctx, x)
		}
		x.report(catalog.EventElicitationDone, catalog.ElicitationDone{ApprovalID: r.ApprovalID})
		x.report(catalog.EventElicitationDone, catalog.ElicitationDone{ApprovalID: "nobody's"})
		x.say(r.Reason + string(r.Content))
		return completed
	})
	s := launchIn(t, h, "a", "p")
	a := pendingOf(t, h, 1)[0]
	_, err := h.Approvals().Decide(context.Background(), approval.Decision{ID: a.ID, Decision: "respond", Content: json.RawMessage(`{"password":"x"}`)})
	assert.EqualError(t, err, "content: expected nothing: what is typed at the address is not for the agent's protocol, received values")
	decide(t, h, approval.Decision{ID: a.ID, Decision: "respond", Content: json.RawMessage(`{}`)})
	assert.Equal(t, "user_responded", await(t, h, s).Result)
	assert.Equal(t, []string{"Sign in — the agent says that this is done"}, notes(t, h, s.UUID), "in the place of the answer")
}

// A form outlives the process that requested it: its values wait until the agent asks again.
func TestAFormThatIsAnsweredAfterAKillIsGivenItsValues(t *testing.T) {
	h, a := afterCrash(t, elicits(asForm))
	assert.True(t, a.Stale)
	assert.Equal(t, portForm, string(a.Elicitation.Schema))
	decide(t, h, approval.Decision{ID: a.ID, Decision: "respond", Content: json.RawMessage(`{"port":2000}`)})
	s := lastOf(t, h, "a", domain.SourceDecision)
	assert.Equal(t, `user_responded{"port":2000}`, s.Result)
}

func TestAFormThatIsDismissedAfterAKillResumesNothing(t *testing.T) {
	h, a := afterCrash(t, elicits(asForm))
	decide(t, h, approval.Decision{ID: a.ID, Decision: "cancel"})
	assert.Len(t, must(h.query.Turns(context.Background(), domain.TurnFilter{}))(t), 1)
	assert.False(t, approvalNow(t, h, a.ID).Carried)
}

// Values that cannot be delivered are not lost silently: the form is shown again with the reason.
func TestValuesThatTheAgentNeverGotAreSaidSo(t *testing.T) {
	h, a := afterCrash(t, turns(elicits(asForm), ends(completed))) // the agent continues without asking again
	decide(t, h, approval.Decision{ID: a.ID, Decision: "respond", Content: json.RawMessage(`{"port":2000}`)})
	lastOf(t, h, "a", domain.SourceDecision)
	again := pendingOf(t, h, 1)[0]
	assert.Equal(t, a.ID, again.Reopens)
	assert.Equal(t, portForm, string(again.Elicitation.Schema))
	assert.Contains(t, again.Reopened, "it never got the answer")
}

// Consent is for one address; another address is another question.
func TestAnAgreementIsForOneAddress(t *testing.T) {
	other := asURL
	other.URL = "https://evil.example/in"
	h, a := afterCrash(t, turns(elicits(asURL), elicits(other)))
	decide(t, h, approval.Decision{ID: a.ID, Decision: "respond", Comment: "yes"})
	require.Eventually(t, func() bool {
		list, err := h.Approvals().Pending(context.Background(), "")
		return err == nil && len(list) == 1 && list[0].Elicitation.URL == other.URL && !list[0].Stale
	}, within, time.Millisecond)
}

func TestWhatCannotBeElicitedIsRefused(t *testing.T) {
	refused := make(chan error, 3)
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		for _, e := range []catalog.Elicitation{{Mode: "voice"}, {Mode: "url"}, {Mode: "form", Schema: json.RawMessage(`[]`)}} {
			_, err := x.daemon.RequestPermission(ctx, catalog.RequestPermissionParams{SessionToken: x.p.SessionToken, Title: "t", Elicitation: &e})
			refused <- err
		}
		return completed
	})
	await(t, h, launchIn(t, h, "a", "p"))
	assert.ErrorContains(t, <-refused, `mode: expected a mode of elicitation, received "voice"`)
	assert.ErrorContains(t, <-refused, "url: expected an address to open")
	assert.ErrorContains(t, <-refused, "schema: expected an object of JSON Schema")
}
