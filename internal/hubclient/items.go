package hubclient

import (
	"context"
	"fmt"
	"io"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// itemsAtOnce is the page size. The hub may return fewer.
const itemsAtOnce = 1000

// Items calls each for the items of a session up to a turn, in order, until each fails.
func Items(ctx context.Context, c *client.Client, session string, each func(i *protocol.SessionItem) error) error {
	for after := new(int64); after != nil; {
		page, _, err := SessionItems(ctx, c, protocol.ItemsParams{Session: protocol.Ref(session), After: after, Limit: new(uint(itemsAtOnce))})
		if err != nil {
			return err
		}
		for _, i := range page.Items {
			if err := each(i); err != nil {
				return err
			}
		}
		if after = nil; page.NextAfter != 0 {
			after = &page.NextAfter
		}
	}
	return nil
}

// WriteExport writes a session up to a turn as a document.
func WriteExport(ctx context.Context, c *client.Client, out io.Writer, session string, format protocol.ExportFormat) error {
	for p := (protocol.ExportParams{Session: protocol.Ref(session), Format: format}); ; {
		part, _, err := SessionExport(ctx, c, p)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(out, part.Text); err != nil {
			return err
		}
		if p.After = part.Next; p.After == "" {
			return nil
		}
	}
}

// WriteAttachment writes the bytes of an attachment.
func WriteAttachment(ctx context.Context, c *client.Client, out io.Writer, id string) error {
	for offset := uint(0); ; {
		part, _, err := Call[struct {
			Data []byte `json:"data"`
			Next uint   `json:"next_offset"` // 0: that is all
		}](ctx, c, "attachment.get", protocol.AttachmentParams{ID: id, Offset: offset})
		if err != nil {
			return err
		}
		if _, err := out.Write(part.Data); err != nil {
			return fmt.Errorf("writing it: %w", err)
		}
		if part.Next <= offset {
			return nil
		}
		offset = part.Next
	}
}

// DataOf returns the data of a received event, as a pointer to the type of its kind; nil if this program
// does not know the kind. Unreadable members are zero.
func DataOf(e eventstream.Event) any {
	data, _ := protocol.DecodeEvent(e.Kind, e.Data)
	return data
}

// ApprovalOf returns the approval in an event.
func ApprovalOf(e eventstream.Event, d *protocol.ApprovalOpenedEvent) Approval {
	return Approval{
		Approval: protocol.Approval{
			ApprovalID: d.ApprovalID, CallID: d.CallID, TurnUUID: e.TurnUUID, Turn: e.Turn, Session: e.Session, Stale: d.Stale,
			Reopens: d.Reopens, Reopened: d.Reopened, ToolName: d.ToolName, ToolInput: d.ToolInput, Editable: d.Editable, TextMember: d.TextMember,
			Ambiguity: d.Ambiguity, ToolUseID: d.ToolUseID, ToolKind: d.ToolKind, Title: d.Title, Subject: d.Subject,
			Options: d.Options, OptionsOnly: d.OptionsOnly, Declinable: d.Declinable, Paths: d.Paths, Details: d.Details,
			Plan: d.Plan, Rules: d.Rules, TakesComment: d.TakesComment, Truncated: d.Truncated, Type: d.Type,
		},
		Elicitation: protocol.Value(d.Elicitation),
		Diffs:       d.Diffs,
	}
}
