package acp

import (
	"encoding/json"
	"fmt"
	"path"

	"github.com/coder/acp-go-sdk"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// The types of content blocks that are no text.
// https://agentclientprotocol.com/protocol/content
const (
	blockImage    = "image"
	blockAudio    = "audio"
	blockResource = "resource"
	blockLink     = "resource_link"
)

// contentBlock is content of an agent's that is no text. Whether it is sound is for
// the hub to say.
func contentBlock(raw json.RawMessage) (b catalog.ContentBlock, ok bool) {
	if json.Unmarshal(raw, &b) != nil {
		return b, false
	}
	switch b.Type {
	case blockImage, blockAudio, blockResource, blockLink:
		return b, true
	}
	return b, false
}

// promptContent is what goes with a prompt, as far as the agent takes it: links
// stand for resources that it does not.
func promptContent(agent string, can promptCapabilities, blocks []catalog.ContentBlock) ([]catalog.ContentBlock, *task.Failure) {
	list := make([]catalog.ContentBlock, 0, len(blocks))
	for _, b := range blocks {
		takes := true
		switch b.Type {
		case blockImage:
			takes = can.Image
		case blockAudio:
			takes = can.Audio
		case blockResource:
			if !can.EmbeddedContext && b.Resource != nil {
				b = catalog.ContentBlock{Type: blockLink, URI: b.Resource.URI, MIMEType: b.Resource.MIMEType, Name: b.Name}
			}
			b.Name = linkName(b)
		case blockLink:
			b.Name = linkName(b)
		default:
			takes = false
		}
		if !takes {
			return nil, &task.Failure{Code: task.CodeContent, Message: fmt.Sprintf("%s takes no content of the type %s in prompts: it takes %s", agent, b.Type, can)}
		}
		list = append(list, b)
	}
	return list, nil
}

// linkName is what a link is called, which the protocol wants to know; a resource has
// no name.
func linkName(b catalog.ContentBlock) string {
	switch {
	case b.Type == blockResource:
		return ""
	case b.Name != "":
		return b.Name
	}
	return path.Base(b.URI)
}

// String says in words what an agent takes in prompts.
func (c promptCapabilities) String() string {
	can := "text"
	for _, one := range []struct {
		takes bool
		name  string
	}{{c.Image, "images"}, {c.Audio, "audio"}, {c.EmbeddedContext, "resources"}} {
		if one.takes {
			can += ", " + one.name
		}
	}
	return can + " and links to resources"
}

// promptBlocks is a prompt with what goes with it.
func promptBlocks(texts []acp.ContentBlock, with []catalog.ContentBlock) []any {
	blocks := make([]any, 0, len(texts)+len(with))
	for _, b := range texts {
		blocks = append(blocks, b)
	}
	for _, b := range with {
		blocks = append(blocks, b)
	}
	return blocks
}

// todoList is the plan in the input of opencode's todowrite, by which alone it tells
// of its plan; nil if there is none.
func todoList(input json.RawMessage) *catalog.Plan {
	var list struct {
		Todos []catalog.PlanEntry `json:"todos"`
	}
	if json.Unmarshal(input, &list) != nil || list.Todos == nil {
		return nil
	}
	return &catalog.Plan{Entries: list.Todos}
}
