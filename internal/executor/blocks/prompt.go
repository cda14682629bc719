package blocks

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// A Prompt is the parameters of session/prompt: texts, and what goes with them.
type Prompt struct {
	Session string
	Texts   []acp.ContentBlock
	With    []catalog.ContentBlock
	Meta    json.RawMessage // an object; nil: none
}

// MarshalJSON implements json.Marshaler.
func (p Prompt) MarshalJSON() ([]byte, error) {
	prompt := make([]any, 0, len(p.Texts)+len(p.With))
	for _, b := range p.Texts {
		prompt = append(prompt, b)
	}
	for _, b := range p.With {
		prompt = append(prompt, b)
	}
	m := map[string]any{"sessionId": p.Session, "prompt": prompt}
	if p.Meta != nil {
		m["_meta"] = p.Meta
	}
	return json.Marshal(m)
}
