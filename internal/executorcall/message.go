package executorcall

import (
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// CreateMessage puts a message of an executor into the conversation that its
// token is good for.
func (c *Calls) CreateMessage(ctx context.Context, p catalog.CreateMessageParams) (catalog.CreateMessageResult, error) {
	token, err := c.opts.Tokens.Find(p.SessionToken)
	if err != nil {
		return catalog.CreateMessageResult{}, err
	}
	if err := c.checkMessage(ctx, p); err != nil {
		return catalog.CreateMessageResult{}, err
	}
	c.opts.Reports.EndMessage(ctx, token.Run)
	p.Message.Content = c.opts.Keys.Of(token.Thread).JSON(p.Message.Content)
	return c.writeMessage(ctx, p)
}

// AddMessage is CreateMessage for clients of our own user, who need no token.
func (c *Calls) AddMessage(ctx context.Context, p catalog.CreateMessageParams) (catalog.CreateMessageResult, error) {
	if err := c.checkMessage(ctx, p); err != nil {
		return catalog.CreateMessageResult{}, err
	}
	return c.writeMessage(ctx, p)
}

// checkMessage refuses a message before anything is changed for it.
func (c *Calls) checkMessage(ctx context.Context, p catalog.CreateMessageParams) error {
	if err := c.CheckTokenOf(ctx, p.SessionToken, p.TaskID); err != nil {
		return err
	}
	if p.Message.Role != "user" && p.Message.Role != "assistant" {
		return domain.Invalid("message.role", "a role", p.Message.Role, "user", "assistant")
	}
	return nil
}

func (c *Calls) writeMessage(ctx context.Context, p catalog.CreateMessageParams) (catalog.CreateMessageResult, error) {
	var item domain.Item
	err := c.opts.Write(ctx, func(t store.Tx) error {
		run, err := query.Find(c.ctx, t, p.TaskID)
		if err != nil {
			return err
		}
		item, err = c.opts.Conversation.Message(t, &run, p.Message.Role, conversation.TextOf(p.Message.Content), p.Message.Type)
		return err
	})
	if err != nil { // the change may still be under way, if ctx has ended
		return catalog.CreateMessageResult{}, err
	}
	return catalog.CreateMessageResult{MessageID: item.Key, CreatedAt: item.Created.UTC().Format(time.RFC3339Nano)}, nil
}
