package acp

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// A thought that is not text is reported as content, and a block of an unknown type is dropped.
func TestContentOfThoughts(t *testing.T) {
	var got []string
	replay := NewReplay(func(r catalog.ReplayedPart) { got = append(got, r.EventType+" "+string(r.EventData)) })
	const content = `"content":{"type":"image","mimeType":"image/png","data":"AAEC"}`
	replay.Update(nil, []byte(`{"sessionUpdate":"agent_thought_chunk",`+content+`,"_meta":{"claudeCode":{"parentToolUseId":"c"}}}`), false)
	replay.Update(nil, []byte(`{"sessionUpdate":"agent_message_chunk",`+content+`}`), false)
	replay.Update(nil, []byte(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"smell"}}`), false)
	replay.Close()
	assert.Equal(t, []string{
		`content {` + content + `,"parent_id":"c","thought":true}`,
		`content {` + content + `}`,
		`raw {"sessionUpdate":"agent_thought_chunk","content":{"type":"smell"}}`,
	}, got)
}
