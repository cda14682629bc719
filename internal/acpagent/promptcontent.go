package acpagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
	"github.com/duet-rpc/duet-rpc/server"
)

// A fullPrompt is a prompt as the hub takes it: its texts, and content that is none.
type fullPrompt struct {
	text    string
	content []json.RawMessage
	blocks  []int           // which block of the client's prompt each content was
	meta    json.RawMessage // the client's, for the agent; nil: none
}

func readPrompt(blocks []json.RawMessage) (p fullPrompt) {
	var texts []string
	for i, raw := range blocks {
		var block schema.Content
		if json.Unmarshal(raw, &block) == nil && block.Type == "text" && block.Text != nil {
			texts = append(texts, *block.Text)
			continue
		}
		p.content, p.blocks = append(p.content, raw), append(p.blocks, i)
	}
	p.text = strings.Join(texts, "\n")
	if strings.TrimSpace(p.text) == "" && len(p.content) > 0 {
		p.text = "See what is attached."
	}
	return p
}

// refused is an error of the hub as the client is told it, with the names that the
// client has given: the hub's content[n] is another block of the prompt.
func (p fullPrompt) refused(err error) error {
	var e *client.Error
	var wrong server.ParamError
	if !errors.As(err, &e) || e.Code != jsonrpc2.CodeInvalidParams || json.Unmarshal(e.Data, &wrong) != nil {
		return refused(err)
	}
	rest, ok := strings.CutPrefix(wrong.Param, "content")
	if !ok {
		return refused(err)
	}
	wrong.Param = "prompt" + rest
	if index, member, found := strings.Cut(strings.TrimPrefix(rest, "["), "]"); found {
		n, err := strconv.Atoi(index)
		if err == nil && n >= 0 && n < len(p.blocks) {
			wrong.Param = fmt.Sprintf("prompt[%d]%s", p.blocks[n], member)
		}
	}
	return server.InvalidParam(wrong)
}
