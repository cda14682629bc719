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

// This file is content that is no text, on its way to an agent and from one:
// images, sounds, resources, and links to some.
// https://agentclientprotocol.com/protocol/content

// The types of content blocks that are no text.
const (
	image     = "image"
	audio     = "audio"
	resource  = "resource"
	linkBlock = "resource_link"
)

// readBlock is content of an agent's that is no text. Whether it is sound is for the hub
// to say; ok is false for content of a type that nobody knows.
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

// addBlock adds content of a tool's that is no text to a list. known is false for content of
// a type that nobody knows.
func addBlock(list []catalog.ContentBlock, raw json.RawMessage) (_ []catalog.ContentBlock, known bool) {
	b, ok := readBlock(raw)
	if ok {
		list = append(list, b)
	}
	return list, ok || b.Type == "text"
}

// promptCapabilities say what an agent takes in prompts beside text and links.
type promptCapabilities struct {
	Image           bool `json:"image"`
	Audio           bool `json:"audio"`
	EmbeddedContext bool `json:"embeddedContext"`
}

// ForPrompt is what goes with a prompt, as far as the agent takes it: links stand for
// resources that it does not. What nothing can stand for is a failure.
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
			if b.Type == resource { // which has no name in the protocol
				b.Name = ""
			}
		case linkBlock:
			takes = true
		}
		if !takes {
			return nil, &task.Failure{Code: task.CodeContent, Message: fmt.Sprintf("%s takes no content of the type %s in prompts: it takes %s", agent, b.Type, c)}
		}
		taken = append(taken, b)
	}
	return taken, nil
}

// linkTo is a link to a resource. The protocol has every link have a name.
func linkTo(b catalog.ContentBlock) catalog.ContentBlock {
	name := b.Name
	if name == "" {
		name = path.Base(b.Resource.URI)
	}
	return catalog.ContentBlock{Type: linkBlock, URI: b.Resource.URI, MIMEType: b.Resource.MIMEType, Name: name}
}

// Takes is the same in the hub's terms.
func (c promptCapabilities) Takes() catalog.PromptTakes {
	return catalog.PromptTakes{Image: c.Image, Audio: c.Audio, Resource: c.EmbeddedContext}
}

// String says in words what an agent takes in prompts.
func (c promptCapabilities) String() string { return domain.PromptTakes(c.Takes()).String() }

// todos is the plan in the input of opencode's tool todowrite, by which alone it
// tells of its plan; nil if there is none.
func todos(input json.RawMessage) *catalog.Plan {
	var list struct {
		Todos []catalog.PlanEntry `json:"todos"`
	}
	if json.Unmarshal(input, &list) != nil || list.Todos == nil {
		return nil
	}
	return &catalog.Plan{Entries: list.Todos}
}

// A promptBlocks is the parameters of session/prompt: texts, and what goes with them.
type promptBlocks struct {
	Session string
	Texts   []acp.ContentBlock
	With    []catalog.ContentBlock
	Meta    json.RawMessage // an object; nil: none
}

// MarshalJSON implements json.Marshaler.
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
