package handlers_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/dialect/humanlayer"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// echoes reports the prompt's content as messages and as a tool result.
func echoes(_ context.Context, x *turn) catalog.ExecutePromptResult {
	for _, b := range x.Content {
		x.report(catalog.EventContent, catalog.MessageContent{Content: b})
	}
	x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "t", Tool: "Read", ParentID: "task"})
	x.report(catalog.EventToolResult, catalog.ToolCall{ToolID: "t", Content: x.Content})
	return done
}

func TestContentGoesToTheAgentAndComesBack(t *testing.T) {
	for _, call := range []struct{ method, params string }{
		{"launchSession", `{"query":"look","content":%s}`},
		{"task.submit", `{"prompt":"look","content":%s}`},
		{"execute_prompt", `{"prompt":"look","task_id":"mine","content":%s}`},
	} {
		var got catalog.ExecutePromptParams
		w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
			got = x.ExecutePromptParams
			return echoes(ctx, x)
		})
		c := w.connect(frame.LSP)
		const content = `[{"type":"image","mimeType":"image/png","data":"AAEC"},{"type":"text","text":"and tell"},{"type":"resource","resource":{"uri":"file:///a.txt","text":"hello"}},{"type":"resource_link","uri":"https://example.org/x"}]`
		c.ask("Subscribe", `{"event_types":["conversation_updated"]}`)
		c.ask(call.method, fmt.Sprintf(call.params, content))
		s := w.ended("task-0001")
		require.Equal(t, domain.Completed, s.State)
		assert.Equal(t, "look\n\nand tell", got.Prompt, call.method)
		require.Len(t, got.Content, 3)
		assert.Equal(t, catalog.ContentBlock{Type: "image", MIMEType: "image/png", Data: "AAEC"}, got.Content[0])
		assert.Equal(t, "hello", *got.Content[1].Resource.Text)
		assert.Equal(t, "x", got.Content[2].Name, "a link has a name")

		asked := object(t, c.event("conversation_updated"))
		assert.Equal(t, "look\n\nand tell", asked["content"])
		assert.Len(t, asked["attachments"], 3)
		shown := object(t, c.event("conversation_updated"))
		assert.Equal(t, "[image image/png 3 B]", shown["content"])
		first := shown["attachments"].([]any)[0].(map[string]any)
		id := domain.AttachmentID([]byte{0, 1, 2})
		assert.Equal(t, map[string]any{"type": "image", "attachment_id": id, "mime_type": "image/png", "size": 3.0}, first)

		list := answer[humanlayer.ConversationResult](c, "getConversation", `{"session_id":"task-0001"}`)
		require.Len(t, list.Events, 6)
		attached := func(n int) (all []protocol.Attachment) {
			require.NoError(t, json.Unmarshal(testkit.JSONMember(t, list.Events[n].Data, "attachments"), &all))
			return all
		}
		for _, n := range []int{0, 4} { // the prompt, and the tool
			assert.Len(t, attached(n), 3, n)
		}
		assert.Equal(t, id, attached(1)[0].ID)
		assert.Equal(t, "task", list.Events[4].ParentToolUseID)
		assert.Contains(t, list.Events[5].ToolResultContent, "[image image/png 3 B]\n[resource a.txt")

		assert.JSONEq(t, `{"id":"`+id+`","mime_type":"image/png","size":3,"data":"AAEC"}`, string(c.ask("attachment.get", `{"id":"`+id+`"}`)))
		assert.JSONEq(t, `{"id":"`+id+`","mime_type":"image/png","size":3,"data":"AQ==","next_offset":2}`, string(c.ask("attachment.get", `{"id":"`+id+`","offset":1,"limit":1}`)))
		assert.JSONEq(t, `{"id":"`+id+`","mime_type":"image/png","size":3,"data":""}`, string(c.ask("attachment.get", `{"id":"`+id+`","offset":7}`)))
		none := c.fail("attachment.get", `{"id":"none"}`)
		assert.Contains(t, none.Message, `no attachment has the id "none"`)
	}
}

func TestALongAttachmentComesInParts(t *testing.T) {
	w := newWorld(t, echoes)
	c := w.connect(frame.LSP)
	picture := bytes.Repeat([]byte("0123456789abcdef"), 400_000)
	c.ask("launchSession", `{"query":"look","content":[{"type":"image","mimeType":"image/png","data":"`+base64.StdEncoding.EncodeToString(picture)+`"}]}`)
	w.ended("task-0001")
	id, got, parts := domain.AttachmentID(picture), []byte{}, 0
	for offset := "0"; offset != ""; parts++ {
		part := answer[struct {
			Data []byte
			Next *json.Number `json:"next_offset"`
		}](c, "attachment.get", `{"id":"`+id+`","limit":3000000,"offset":`+offset+`}`)
		got = append(got, part.Data...)
		offset = ""
		if part.Next != nil {
			offset = part.Next.String()
		}
	}
	assert.Equal(t, 3, parts)
	assert.True(t, bytes.Equal(picture, got))
}

func TestContentThatIsRefused(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	links := strings.TrimSuffix(strings.Repeat(`{"type":"resource_link","uri":"u"},`, 101), ",")
	for content, want := range map[string]string{
		`[{"type":"image","mimeType":"image/png","data":"<"}]`:       "content[0].data",
		`[{"type":"text","text":"t"},{"type":"video"}]`:              "content[1].type",
		`[{"type":"image","mimeType":"image/\u0007","data":"AAEC"}]`: "content[0].mimeType",
		`[{"type":"resource"}]`:                                      "content[0].resource",
		`[` + links + `]`:                                            "at most 100 blocks",
		`[{"type":"image","mimeType":"text/plain","data":"` + strings.Repeat("AAAA", 1000) + `"}]`: "image/",
	} {
		for _, call := range []struct{ method, params string }{
			{"launchSession", `{"query":"q","content":%s}`},
			{"continueSession", `{"session_id":"task-0001","query":"q","content":%s}`},
			{"task.submit", `{"prompt":"q","content":%s}`},
			{"execute_prompt", `{"prompt":"q","content":%s}`},
		} {
			e := c.fail(call.method, fmt.Sprintf(call.params, content))
			assert.Equal(t, -32602, e.Code, call.method)
			assert.Contains(t, fmt.Sprint(e.Message, e.Data), want, call.method)
			assert.Less(t, len(e.Message), 400)
		}
	}
}

func TestADraftKeepsItsContent(t *testing.T) {
	var got []catalog.ContentBlock
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		got = x.Content
		return quick(ctx, x)
	})
	c := w.connect(frame.LSP)
	image := func(data string) string { return `[{"type":"image","mimeType":"image/png","data":"` + data + `"}]` }
	draft := func() string {
		return testkit.JSONAs[string](t, c.ask("launchSession", `{"query":"q","draft":true,"content":`+image("AAEC")+`}`), "session_id")
	}
	id := draft()
	c.ask("continueSession", `{"session_id":"`+id+`"}`)
	w.ended(id)
	require.Len(t, got, 1)
	assert.Equal(t, "AAEC", got[0].Data)
	id = draft()
	c.ask("continueSession", `{"session_id":"`+id+`","content":`+image("AQID")+`}`)
	w.ended(id)
	require.Len(t, got, 1)
	assert.Equal(t, "AQID", got[0].Data)
	c.ask("continueSession", `{"session_id":"`+id+`","query":"more"}`)
	w.ended("task-0003")
	assert.Empty(t, got, "content belongs to one prompt")
}
