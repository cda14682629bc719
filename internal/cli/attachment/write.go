package attachment

import (
	"context"
	"errors"
	"io"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// Write writes the bytes of an attachment that the hub has, part by part.
func Write(ctx context.Context, c *client.Client, out io.Writer, id string) error {
	if term.IsTerminal(out) {
		return errors.New("it is not for a terminal: write it to a file, with > FILE")
	}
	return wire.WriteAttachment(ctx, c, out, id)
}

// HowToSave is the command that saves the bytes of an attachment, or "" where it has
// none.
func HowToSave(a wire.Attachment) string {
	if a.ID == "" {
		return ""
	}
	return "duet-rpc session attachment " + a.ID + " > FILE"
}
