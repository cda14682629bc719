package demoagent

import (
	"context"
	"fmt"

	"github.com/coder/acp-go-sdk"
)

// picture is a PNG of one red pixel.
const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"

// image sends a picture, as a part of a message and as what a tool gives back.
func (t *turn) image(ctx context.Context, _ argument) error {
	if err := t.say(ctx, "Here is a picture. "); err != nil {
		return err
	}
	if err := t.update(ctx, acp.UpdateAgentMessage(acp.ImageBlock(picture, "image/png"))); err != nil {
		return err
	}
	call := t.newCall("Read", "Read red.png", acp.ToolKindRead, map[string]any{"file_path": "red.png"})
	if err := t.update(ctx, acp.SessionUpdate{ToolCall: &call}); err != nil {
		return err
	}
	call.Content = []acp.ToolCallContent{acp.ToolContent(acp.ImageBlock(picture, "image/png"))}
	return t.end(ctx, call, acp.ToolCallStatusCompleted)
}

// sketch thinks of a picture.
func (t *turn) sketch(ctx context.Context, _ argument) error {
	return t.update(ctx, acp.UpdateAgentThought(acp.ImageBlock(picture, "image/png")))
}

// colors runs a tool that prints in colours.
func (t *turn) colors(ctx context.Context, _ argument) error {
	call := t.newCall("Bash", "make test", acp.ToolKindExecute, map[string]any{"command": "make test"})
	if err := t.update(ctx, acp.SessionUpdate{ToolCall: &call}); err != nil {
		return err
	}
	call.Content = []acp.ToolCallContent{acp.ToolContent(acp.TextBlock("\x1b[32mPASS\x1b[0m one\n\x1b[1;31mFAIL\x1b[0m two\n"))}
	return t.end(ctx, call, acp.ToolCallStatusCompleted)
}

// subagent makes a tool call that another one, some words and a picture are part of,
// marked as Claude Code's agent does.
func (t *turn) subagent(ctx context.Context, _ argument) error {
	outer := t.newCall("Task", "Look around", acp.ToolKindThink, map[string]any{"prompt": "look around"})
	if err := t.update(ctx, acp.SessionUpdate{ToolCall: &outer}); err != nil {
		return err
	}
	inner := t.newCall("Bash", "ls", acp.ToolKindExecute, map[string]any{"command": "ls"})
	inner.Meta["claudeCode"] = map[string]any{"toolName": "Bash", "parentToolUseId": string(outer.ToolCallId)}
	if err := t.update(ctx, acp.SessionUpdate{ToolCall: &inner}); err != nil {
		return err
	}
	said := acp.UpdateAgentMessageText("There is demo.txt.")
	said.AgentMessageChunk.Meta = inner.Meta
	inner.RawOutput = "demo.txt"
	if err := t.end(ctx, inner, acp.ToolCallStatusCompleted); err != nil {
		return err
	}
	if err := t.update(ctx, said); err != nil {
		return err
	}
	shown := acp.UpdateAgentMessage(acp.ImageBlock(picture, "image/png"))
	shown.AgentMessageChunk.Meta = inner.Meta
	if err := t.update(ctx, shown); err != nil {
		return err
	}
	outer.RawOutput = "There is one file."
	return t.end(ctx, outer, acp.ToolCallStatusCompleted)
}

// stuck makes a tool call of a sub-agent that neither ends nor asks, as opencode's do
// when they need a permission, until the turn is cancelled.
func (t *turn) stuck(ctx context.Context, _ argument) error {
	outer := t.newCall("Task", "Look around", acp.ToolKindThink, map[string]any{"prompt": "look around"})
	if err := t.update(ctx, acp.SessionUpdate{ToolCall: &outer}); err != nil {
		return err
	}
	inner := t.newCall("Bash", "touch made", acp.ToolKindExecute, map[string]any{"command": "touch made"})
	inner.Meta["claudeCode"] = map[string]any{"toolName": "Bash", "parentToolUseId": string(outer.ToolCallId)}
	if err := t.update(ctx, acp.SessionUpdate{ToolCall: &inner}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// content says what came with the prompt.
func (t *turn) content(ctx context.Context, _ argument) error {
	for _, b := range t.blocks {
		text := ""
		switch {
		case b.Image != nil:
			text = fmt.Sprintf("You gave me an image, %s, %d characters. ", b.Image.MimeType, len(b.Image.Data))
		case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
			r := b.Resource.Resource.TextResourceContents
			text = fmt.Sprintf("You gave me %s: %s ", r.Uri, quote(r.Text))
		case b.ResourceLink != nil:
			text = fmt.Sprintf("You gave me a link to %s. ", b.ResourceLink.Uri)
		default:
			continue
		}
		if err := t.say(ctx, text); err != nil {
			return err
		}
	}
	return nil
}
