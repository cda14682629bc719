package attachment

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// Help says what goes with a prompt.
const Help = `Files go with a prompt by --attach FILE: images, audio, text and others, as far as
the agent takes them. A file of the project that the prompt's arguments mention as
@path goes along, too.
`

// Flags are what goes with a prompt, as the user has said it.
type Flags struct {
	attach, files, images []string
	blocks                []Block
}

// Add adds --attach to a command.
func (f *Flags) Add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.attach, "attach", nil, "send `FILE` with the prompt, such as an image; may be given several times")
}

// AddShort adds --file and --image, too, as other programs call them.
func (f *Flags) AddShort(cmd *cobra.Command) {
	f.Add(cmd)
	cmd.Flags().StringArrayVarP(&f.files, "file", "f", nil, "send `FILE`, as --attach")
	cmd.Flags().StringArrayVarP(&f.images, "image", "i", nil, "send the image `FILE` with the prompt; may be given several times")
}

// Read reads the files. args are the prompt's arguments: what comes from standard
// input mentions nothing.
func (f *Flags) Read(cmd *cobra.Command, s interface {
	Project() (project.Project, error)
}, args []string,
) (err error) {
	if f.blocks, err = Files(slices.Concat(f.attach, f.files, f.images)); err != nil {
		return err
	}
	for i, path := range f.images {
		if b := f.blocks[len(f.attach)+len(f.files)+i]; b.Type != "image" {
			return fmt.Errorf("--image %s is no image that is known; --file sends any file", path)
		}
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
		fmt.Fprintf(cmd.ErrOrStderr(), "— @%s is outside of the project, and stays here: --attach sends it\n", term.Line(path))
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
