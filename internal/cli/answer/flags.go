package answer

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// Flags say what the last message has to be, and where it goes.
type Flags struct {
	schemaFile, file string

	schema *Schema // nil: any message will do
	text   string  // the message, or the JSON of it
}

// Add adds them to a command.
func (f *Flags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.schemaFile, "output-schema", "", "have the last message fit the JSON Schema in `FILE`")
	cmd.Flags().StringVarP(&f.file, "output-last-message", "o", "", "write the last message to `FILE`")
}

// Asking is the prompt that asks for such an answer, too.
func (f *Flags) Asking(prompt string) (_ string, err error) {
	if f.schemaFile == "" {
		return prompt, nil
	}
	if f.schema, err = Read(f.schemaFile); err != nil {
		return "", fmt.Errorf("--output-schema: %w", err)
	}
	return f.schema.Asking(prompt), nil
}

// Take takes the last message of a session, or says why it will not do.
func (f *Flags) Take(s wire.Session) (err error) {
	f.text = ""
	if s.Result != nil {
		f.text = s.Result.Result
	}
	if f.schema != nil {
		f.text, err = f.schema.Check(f.text)
	}
	return err
}

// Write writes the message to the file, if one is named.
func (f *Flags) Write() error {
	if f.file == "" {
		return nil
	}
	text := strings.TrimRight(f.text, "\n")
	if text != "" {
		text += "\n"
	}
	return os.WriteFile(f.file, []byte(text), 0o666) // what the umask leaves, as of a redirection
}

// Again is a prompt that asks for another answer, after one that does not fit.
func (f *Flags) Again(why error) string { return f.schema.Again(why) }
