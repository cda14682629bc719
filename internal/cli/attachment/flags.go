package attachment

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// Help says what goes with a prompt.
const Help = `Files go with a prompt by --attach FILE: images, audio, text and others, as far as
the agent takes them. A file of the project that the prompt's arguments mention as
@path goes along, too.
`

// Flags are what goes with a prompt, as the user has said it.
type Flags struct {
	files  []string
	blocks []Block
}

// Add adds --attach to a command.
func (f *Flags) Add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.files, "attach", nil, "a file that goes with the prompt, such as an image; may be given several times")
}

// Read reads the files. args are the prompt's arguments: what comes from standard
// input mentions nothing.
func (f *Flags) Read(cmd *cobra.Command, s interface {
	Project() (project.Project, error)
}, args []string,
) (err error) {
	if f.blocks, err = Files(f.files); err != nil {
		return err
	}
	text := strings.Join(args, " ")
	if !strings.Contains(text, "@") {
		return nil
	}
	p, err := s.Project()
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	mentioned, outside := Mentioned(text, dir, p.Root)
	for _, path := range outside {
		fmt.Fprintf(cmd.ErrOrStderr(), "— @%s is outside of the project, and stays here: --attach sends it\n", output.Line(path))
	}
	f.blocks = append(f.blocks, mentioned...)
	return nil
}

// Into adds what was read to the parameters of a method.
func (f *Flags) Into(params map[string]any) {
	if f.blocks != nil {
		params["content"] = f.blocks
	}
}
