package intake

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
)

// problems returns why content was left out.
func problems(list []domain.Payload) (why []string) {
	for _, p := range list {
		if e, ok := p.(domain.AgentErrorReported); ok {
			var report catalog.ReportedError
			_ = json.Unmarshal(e.Report, &report)
			why = append(why, report.Code+": "+report.Message)
		}
	}
	return why
}

func TestAnImageIsAMessageOfItsOwn(t *testing.T) {
	r := newRecords(t)
	r.report(t, catalog.EventContentDelta, `{"delta":{"text":"Look: "}}`)
	list := r.report(t, catalog.EventContent, `{"content":{"type":"image","mimeType":"image/png","data":"AAEC"}}`)
	id := domain.AttachmentID([]byte{0, 1, 2})
	block := domain.Block{Type: "image", MIMEType: "image/png", Attachment: id, Size: 3}
	require.Len(t, list, 2)
	assert.Equal(t, "Look: ", list[0].(domain.MessageAdded).Text)
	image := list[1].(domain.MessageAdded)
	assert.Equal(t, []domain.Block{block}, image.Blocks)
	assert.Equal(t, "[image image/png 3 B]", image.Text)
	items, err := r.store.ItemsOfTurn(t.Context(), r.turn.ID)
	require.NoError(t, err)
	require.Len(t, items, 2)
	assert.Equal(t, domain.MessageContent{Blocks: []domain.Block{block}}, items[1].Data)
	kept, err := r.store.Attachment(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, domain.Attachment{ID: id, MIMEType: "image/png", Data: []byte{0, 1, 2}}, kept)
	turn, err := r.store.Turn(t.Context(), r.turn.ID)
	require.NoError(t, err)
	assert.Equal(t, 2, turn.Messages)
	assert.Equal(t, "Look: ", turn.Result, "a text is the answer")
}

// A sub-agent's image belongs to its call, not to the answer.
func TestASubAgentsImageIsOfItsCall(t *testing.T) {
	r := newRecords(t)
	list := r.report(t, catalog.EventContent, `{"content":{"type":"image","mimeType":"image/png","data":"AAEC"},"parent_id":"call"}`)
	require.Len(t, list, 1)
	assert.Equal(t, "call", list[0].(domain.MessageAdded).ParentID)
	items, err := r.store.ItemsOfTurn(t.Context(), r.turn.ID)
	require.NoError(t, err)
	require.Len(t, items, 1)
	assert.Equal(t, "call", items[0].ParentID)
	turn, err := r.store.Turn(t.Context(), r.turn.ID)
	require.NoError(t, err)
	assert.Empty(t, turn.Result)
}

// An image in the agent's thought is a thought, not an answer.
func TestAThoughtThatIsAnImageIsKept(t *testing.T) {
	r := newRecords(t)
	r.report(t, catalog.EventThinkingChunk, `{"delta":{"text":"Like this:"}}`)
	list := r.report(t, catalog.EventContent, `{"content":{"type":"image","mimeType":"image/png","data":"AAEC"},"thought":true}`)
	require.Len(t, list, 2, "what it has thought until then comes first")
	block := domain.Block{Type: "image", MIMEType: "image/png", Attachment: domain.AttachmentID([]byte{0, 1, 2}), Size: 3}
	picture := list[1].(domain.MessageAdded)
	assert.Equal(t, domain.ItemThinking, picture.Type)
	assert.Equal(t, []domain.Block{block}, picture.Blocks)
	items, err := r.store.ItemsOfTurn(t.Context(), r.turn.ID)
	require.NoError(t, err)
	require.Len(t, items, 2)
	assert.Equal(t, domain.ItemThinking, items[1].Kind)
	assert.Equal(t, domain.MessageContent{Blocks: []domain.Block{block}}, items[1].Data)
	turn, err := r.store.Turn(t.Context(), r.turn.ID)
	require.NoError(t, err)
	assert.Empty(t, turn.Result)
	assert.Zero(t, turn.Messages)
}

func TestWhatAToolGivesBackIsKept(t *testing.T) {
	r := newRecords(t)
	r.report(t, catalog.EventToolCall, `{"tool_id":"t","tool":"Read","input":{"content":"is no content"}}`)
	list := r.report(t, catalog.EventToolResult, `{"tool_id":"t","content":[{"type":"image","mimeType":"image/png","data":"AAEC"},{"type":"image","mimeType":"x","data":"AAEC"},{"type":"resource_link","uri":"file:///a","name":"a"}]}`)
	assert.Len(t, problems(list), 1)
	item, err := r.store.ToolItem(t.Context(), r.turn.ID, "t")
	require.NoError(t, err)
	details := item.Data.(domain.ToolDetails)
	require.Len(t, details.Blocks, 2)
	assert.Equal(t, "file:///a", details.Blocks[1].URI)
	assert.Equal(t, "[image image/png 3 B]\n[resource link a file:///a]", item.Result)
	assert.JSONEq(t, `{"content":"is no content"}`, string(item.Input))
	_, err = r.store.Attachment(t.Context(), details.Blocks[0].Attachment)
	assert.NoError(t, err)
}

func TestHostileContentIsLeftOutAndEndsNothing(t *testing.T) {
	r := newRecords(t)
	for data, want := range map[string]string{
		`{"content":{"type":"image","mimeType":"image/png","data":"<svg>"}}`:             "in base64",
		`{"content":{"type":"image","mimeType":"image/\u001b[31mpng","data":"AAEC"}}`:    `"image/\x1b[31mpng"`,
		`{"content":{"type":"image","mimeType":"image/png","data":7}}`:                   "it is no content",
		`{"content":{"type":"resource","resource":{"uri":"u","blob":"!"}}}`:              "resource.blob",
		`{"content":{"type":"image","mimeType":"image/png","data":"` + huge() + `"}}`:    "at most 10485760 bytes",
		`{"content":{"type":"resource_link","uri":"` + strings.Repeat("u", 5000) + `"}}`: "uri",
	} {
		list := r.report(t, catalog.EventContent, data)
		why := problems(list)
		if assert.Len(t, why, 1, want) {
			assert.Contains(t, why[0], transcript.ContentRefused)
			assert.Contains(t, why[0], want)
			require.Len(t, list, 2, want)
			kept := list[1].(domain.MessageAdded)
			assert.Equal(t, domain.ItemSystem, kept.Type, "the session has it, too")
			assert.Contains(t, kept.Text, "content that the agent sent was left out: ")
			assert.Contains(t, why[0], kept.Text)
		}
	}
	result := catalog.ExecutePromptResult{Status: catalog.StatusCompleted}
	assert.Equal(t, result, r.desk.turn.Judge(result), "the turn has completed nevertheless")
}

func huge() string { return base64.StdEncoding.EncodeToString(make([]byte, transcript.MaxBlock+1)) }

func TestTheContentOfATurnIsBounded(t *testing.T) {
	r := newRecords(t)
	image := func(n byte, size int) string {
		data := make([]byte, size)
		data[0] = n
		return `{"content":{"type":"image","mimeType":"image/png","data":"` + base64.StdEncoding.EncodeToString(data) + `"}}`
	}
	most := maxTurnContent / transcript.MaxBlock
	for n := range most {
		assert.Empty(t, problems(r.report(t, catalog.EventContent, image(byte(n), transcript.MaxBlock))))
	}
	assert.Len(t, problems(r.report(t, catalog.EventContent, image(byte(most), transcript.MaxBlock))), 1)
	assert.Empty(t, problems(r.report(t, catalog.EventContent, image(0, transcript.MaxBlock))), "it is there already")
	assert.Empty(t, problems(r.report(t, catalog.EventContent, image(0, maxTurnContent%transcript.MaxBlock))), "the limit itself")
	assert.Len(t, problems(r.report(t, catalog.EventContent, image(0, 1))), 1, "one byte more")
	assert.Empty(t, problems(r.report(t, catalog.EventContent, `{"content":{"type":"resource_link","uri":"u"}}`)))

	many := `{"tool_id":"t","content":[` + strings.Repeat(`{"type":"resource_link","uri":"u"},`, transcript.MaxBlocks) + `{"type":"resource_link","uri":"u"}]}`
	assert.Len(t, problems(r.report(t, catalog.EventToolResult, many)), 1)
	item, err := r.store.ToolItem(t.Context(), r.turn.ID, "t")
	require.NoError(t, err)
	assert.Len(t, item.Data.(domain.ToolDetails).Blocks, transcript.MaxBlocks)
}

func TestKeysAreTakenOutOfContent(t *testing.T) {
	const key = "sk-very-secret-key"
	r := newRecords(t)
	secrets := &redact.Secrets{}
	secrets.Add(key)
	r.desk.turn = r.Begin(r.turn.ID, r.turn.UUID, secrets)
	blob := base64.StdEncoding.EncodeToString([]byte("KEY=" + key))
	for _, resource := range []string{`"text":"KEY=` + key + `"`, `"blob":"` + blob + `"`} {
		list := r.report(t, catalog.EventContent, `{"content":{"type":"resource","resource":{"uri":"file:///.env",`+resource+`}}}`)
		require.Len(t, list, 1)
		kept, err := r.store.Attachment(t.Context(), list[0].(domain.MessageAdded).Blocks[0].Attachment)
		require.NoError(t, err)
		assert.Equal(t, "KEY="+redact.Mark, string(kept.Data))
	}
	_, err := r.store.Attachment(t.Context(), domain.AttachmentID([]byte("KEY="+key)))
	assert.ErrorIs(t, err, store.ErrNotFound)
}
