package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/cli/tty"
	"github.com/duet-rpc/duet-rpc/internal/cli/wire"
)

func newSessionAttachmentCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "attachment ID",
		Short:   "Write an image, a sound or a file of a conversation to standard output",
		Long:    "Write an image, a sound or another file that is part of a conversation to standard\noutput, which has to be a file or a pipe. Its id stands where the agent has said it.\n" + hubStatusHelp,
		Example: "  duet-rpc session attachment 5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef > image.png",
		Args:    exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if tty.Is(os.Stdout) && !s.json {
				return errors.New("it is not for a terminal: write it to a file, with > FILE")
			}
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				return writeAttachment(ctx, cmd, s, c, args[0])
			})
		},
	}
}

// writeAttachment writes an attachment, part by part.
func writeAttachment(ctx context.Context, cmd *cobra.Command, s *settings, c *client.Client, id string) error {
	for offset := int64(0); ; {
		part, raw, err := wire.Call[wire.AttachmentPart](ctx, c, "getAttachment", map[string]any{"id": id, "offset": offset})
		if err != nil {
			return err
		}
		if s.json {
			return output.Raw(cmd.OutOrStdout(), raw)
		}
		if _, err := cmd.OutOrStdout().Write(part.Data); err != nil {
			return fmt.Errorf("writing it: %w", err)
		}
		if part.NextOffset <= offset {
			return nil
		}
		offset = part.NextOffset
	}
}
