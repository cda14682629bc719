package attachment

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/tty"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// Write writes the bytes of an attachment that the hub has, part by part.
func Write(ctx context.Context, c *client.Client, out io.Writer, id string) error {
	if tty.Is(out) {
		return errors.New("it is not for a terminal: write it to a file, with > FILE")
	}
	for offset := int64(0); ; {
		part, _, err := wire.Call[wire.AttachmentPart](ctx, c, "getAttachment", map[string]any{"id": id, "offset": offset})
		if err != nil {
			return err
		}
		if _, err := out.Write(part.Data); err != nil {
			return fmt.Errorf("writing it: %w", err)
		}
		if part.NextOffset <= offset {
			return nil
		}
		offset = part.NextOffset
	}
}
