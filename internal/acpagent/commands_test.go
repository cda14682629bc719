package acpagent

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// A number refers to the question in the shown list, also after other answers.
func TestInboxNumbers(t *testing.T) {
	a, b, c := hubclient.Approval{Approval: protocol.Approval{ApprovalID: "a"}}, hubclient.Approval{Approval: protocol.Approval{ApprovalID: "b"}}, hubclient.Approval{Approval: protocol.Approval{ApprovalID: "c"}}
	is := func(s *session, number string, want string, waiting ...hubclient.Approval) {
		t.Helper()
		q, ok := s.numbered(number, waiting)
		assert.Equal(t, want, q.ApprovalID)
		assert.Equal(t, want != "", ok)
	}
	s := new(session)
	is(s, "2", "b", a, b) // no list was shown: the open questions count
	s.listInbox([]hubclient.Approval{a, b})
	is(s, "1", "a", a, b)
	is(s, "1", "", b) // another client has answered a
	is(s, "2", "b", b, c)
	is(s, "3", "", a, b, c) // not in the shown list
	for _, none := range []string{"0", "-1", "x"} {
		is(s, none, "", a, b)
	}
	assert.Equal(t, "Nothing waits for an answer.\n", s.listInbox(nil))
	is(s, "1", "", c)
}
