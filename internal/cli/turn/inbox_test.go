package turn

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

func TestShortApprovalIDs(t *testing.T) {
	open := []hubclient.Approval{{Approval: protocol.Approval{ApprovalID: "aaaabbbbcccc"}}, {Approval: protocol.Approval{ApprovalID: "aaaabbbbdddd", CallID: "call_1"}}, {Approval: protocol.Approval{ApprovalID: "eeee", ToolUseID: "tool_1"}}}
	for word, want := range map[string]string{
		"aaaabbbbc": "aaaabbbbcccc", "eeee": "eeee", "e": "eeee", "call_1": "aaaabbbbdddd", "tool_1": "eeee", "closed": "closed",
	} {
		id, err := Meant(word, open)
		assert.NoError(t, err)
		assert.Equal(t, want, id)
	}
	_, err := Meant("aaaa", open)
	assert.EqualError(t, err, `"aaaa" means 2 open questions: aaaabbbbcccc, aaaabbbbdddd`)

	assert.Equal(t, "aaaabbbbc", UniqueID("aaaabbbbcccc", open))
	assert.Equal(t, "eeee", UniqueID("eeee", open))
	assert.Equal(t, "ffffffff", UniqueID("ffffffffgggg", open))
}
