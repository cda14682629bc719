package acp

import (
	"encoding/json"
	"fmt"
	"path"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// Content blocks to and from an agent: images, sounds, resources, and links to them.
// https://agentclientprotocol.com/protocol/content

// Types of content blocks other than text.
const (
	image     = "image"
	audio     = "audio"
	resource  = "resource"
	linkBlock = "resource_link"
)

// readBlock reads a content block that is not text. The hub validates it; ok is false for an
// unknown type.
func readBlock(raw json.RawMessage) (b catalog.ContentBlock, ok bool) {
	if json.Unmarshal(raw, &b) != nil {
		return b, false
	}
	switch b.Type {
	case image, audio, resource, linkBlock:
		return b, true
	}
	return b, false
}

// addBlock adds a tool's content that is not text to a list. known is false for an unknown type.
func addBlock(list []catalog.ContentBlock, raw json.RawMessage) (_ []catalog.ContentBlock, known bool) {
	b, ok := readBlock(raw)
	if ok {
		list = append(list, b)
	}
	return list, ok || b.Type == "text"
}

// promptCapabilities lists the content that an agent accepts in prompts beside text and links.
type promptCapabilities struct {
	Image           bool `json:"image"`
	Audio           bool `json:"audio"`
	EmbeddedContext bool `json:"embeddedContext"`
}

// ForPrompt returns the attachments of a prompt in a form that the agent accepts. A link replaces
// a resource that the agent does not accept. It fails for content that a link cannot replace.
func (c promptCapabilities) ForPrompt(agent string, list []catalog.ContentBlock) ([]catalog.ContentBlock, *task.Failure) {
	taken := make([]catalog.ContentBlock, 0, len(list))
	for _, b := range list {
		takes := false
		switch b.Type {
		case image:
			takes = c.Image
		case audio:
			takes = c.Audio
		case resource:
			takes = b.Resource != nil
			if takes && !c.EmbeddedContext {
				b = linkTo(b)
			}
			if b.Type == resource { // a resource has no name in the protocol
				b.Name = ""
			}
		case linkBlock:
			takes = true
		}
		if !takes {
			return nil, &task.Failure{
				Code: task.CodeContent, Message: fmt.Sprintf("%s takes no content of the type %s in prompts: it takes %s", agent, b.Type, c),
			}
		}
		taken = append(taken, b)
	}
	return taken, nil
}

// linkTo returns a link to a resource. The protocol requires a name for each link.
func linkTo(b catalog.ContentBlock) catalog.ContentBlock {
	name := b.Name
	if name == "" {
		name = path.Base(b.Resource.URI)
	}
	return catalog.ContentBlock{Type: linkBlock, URI: b.Resource.URI, MIMEType: b.Resource.MIMEType, Name: name}
}

// Takes converts the capabilities to the hub's type.
func (c promptCapabilities) Takes() domain.PromptTakes {
	return domain.PromptTakes{Image: c.Image, Audio: c.Audio, Resource: c.EmbeddedContext}
}

// String describes for the user what the agent accepts in prompts.
func (c promptCapabilities) String() string { return domain.PromptTakes(c.Takes()).String() }

// A promptBlocks is the parameters of session/prompt: texts and attachments.
type promptBlocks struct {
	Session string
	Texts   []acp.Content
	With    []catalog.ContentBlock
	Meta    json.RawMessage // an object; nil: none
}

func (p promptBlocks) MarshalJSON() ([]byte, error) {
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
