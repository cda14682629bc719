package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/attachment"
)

// filesHelp says what goes with a prompt.
const filesHelp = `Files go with a prompt by --attach FILE: images, audio, text and others, as far as
the agent takes them. A file of the project that the prompt's arguments mention as
@path goes along, too.
`

// attachments are what goes with a prompt.
type attachments struct{ files []string }

func (a *attachments) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&a.files, "attach", nil, "a file that goes with the prompt, such as an image; may be given several times")
}

// content is what goes with a prompt, nil if nothing does. args are the prompt's
// arguments: what comes from standard input mentions nothing.
func (a *attachments) content(cmd *cobra.Command, s *settings, args []string) ([]attachment.Block, error) {
	blocks, err := attachment.Files(a.files)
	if err != nil {
		return nil, err
	}
	text := strings.Join(args, " ")
	if !strings.Contains(text, "@") {
		return blocks, nil
	}
	p, err := s.Project()
	if err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	mentioned, outside := attachment.Mentioned(text, dir, p.Root)
	for _, path := range outside {
		progress(cmd, s, "@%s is outside of the project, and stays here: --attach sends it", path)
	}
	return append(blocks, mentioned...), nil
}
