// Package blocks is content that is no text, on its way to an agent and from one:
// images, sounds, resources, and links to some.
// https://agentclientprotocol.com/protocol/content
package blocks

import (
	"encoding/json"
	"fmt"
	"path"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// The types of content blocks that are no text.
const (
	image    = "image"
	audio    = "audio"
	resource = "resource"
	link     = "resource_link"
)

// Read is content of an agent's that is no text. Whether it is sound is for the hub
// to say; ok is false for content of a type that nobody knows.
func Read(raw json.RawMessage) (b catalog.ContentBlock, ok bool) {
	if json.Unmarshal(raw, &b) != nil {
		return b, false
	}
	switch b.Type {
	case image, audio, resource, link:
		return b, true
	}
	return b, false
}

// Add adds content of a tool's that is no text to a list. known is false for content of
// a type that nobody knows.
func Add(list []catalog.ContentBlock, raw json.RawMessage) (_ []catalog.ContentBlock, known bool) {
	b, ok := Read(raw)
	if ok {
		list = append(list, b)
	}
	return list, ok || b.Type == "text"
}

// Capabilities say what an agent takes in prompts beside text and links.
type Capabilities struct {
	Image           bool `json:"image"`
	Audio           bool `json:"audio"`
	EmbeddedContext bool `json:"embeddedContext"`
}

// ForPrompt is what goes with a prompt, as far as the agent takes it: links stand for
// resources that it does not. What nothing can stand for is a failure.
func (c Capabilities) ForPrompt(agent string, list []catalog.ContentBlock) ([]catalog.ContentBlock, *task.Failure) {
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
		case link:
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
	return catalog.ContentBlock{Type: link, URI: b.Resource.URI, MIMEType: b.Resource.MIMEType, Name: name}
}

// Takes is the same in the hub's terms.
func (c Capabilities) Takes() catalog.PromptTakes {
	return catalog.PromptTakes{Image: c.Image, Audio: c.Audio, Resource: c.EmbeddedContext}
}

// String says in words what an agent takes in prompts.
func (c Capabilities) String() string { return domain.PromptTakes(c.Takes()).String() }

// Todos is the plan in the input of opencode's tool todowrite, by which alone it
// tells of its plan; nil if there is none.
func Todos(input json.RawMessage) *catalog.Plan {
	var list struct {
		Todos []catalog.PlanEntry `json:"todos"`
	}
	if json.Unmarshal(input, &list) != nil || list.Todos == nil {
		return nil
	}
	return &catalog.Plan{Entries: list.Todos}
}
