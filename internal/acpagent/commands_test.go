package acpagent

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// A number refers to the question in the shown list, whatever was answered since.
func TestInboxNumbers(t *testing.T) {
	a, b, c := wire.Approval{Approval: protocol.Approval{ApprovalID: "a"}}, wire.Approval{Approval: protocol.Approval{ApprovalID: "b"}}, wire.Approval{Approval: protocol.Approval{ApprovalID: "c"}}
	is := func(s *session, number string, want string, waiting ...wire.Approval) {
		t.Helper()
		q, ok := s.numbered(number, waiting)
		assert.Equal(t, want, q.ApprovalID)
		assert.Equal(t, want != "", ok)
	}
	s := new(session)
	is(s, "2", "b", a, b) // no list was shown: the open questions count
	s.listInbox([]wire.Approval{a, b})
	is(s, "1", "a", a, b)
	is(s, "1", "", b) // a was answered in another place
	is(s, "2", "b", b, c)
	is(s, "3", "", a, b, c) // it was not shown
	for _, none := range []string{"0", "-1", "x"} {
		is(s, none, "", a, b)
	}
	assert.Equal(t, "Nothing waits for an answer.\n", s.listInbox(nil))
	is(s, "1", "", c)
}
