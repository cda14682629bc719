package cli

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

const documentIntroduction = `# Commands

This page is generated from the commands (` + "`make docs`" + `). ` + "`duet-rpc COMMAND --help`" + ` prints the same.

Flags may stand before or after the command. Every command takes the flags of ` + "`duet-rpc`" + ` itself. With ` + "`--json`" + ` a command
prints JSON.

`

// TestCommandsDocument checks docs/cli.md against the help of the commands.
func TestCommandsDocument(t *testing.T) {
	var page bytes.Buffer
	page.WriteString(documentIntroduction)
	var write func(*cobra.Command)
	write = func(cmd *cobra.Command) {
		if !cmd.IsAvailableCommand() && cmd.HasParent() {
			return
		}
		cmd.DisableAutoGenTag = true
		var section bytes.Buffer
		require.NoError(t, doc.GenMarkdownCustom(cmd, &section, func(string) string { return "" }))
		page.WriteString(strings.TrimSpace(commandSection(section.String())) + "\n\n")
		for _, sub := range cmd.Commands() {
			if sub.Name() != "help" && sub.Name() != "completion" {
				write(sub)
			}
		}
	}
	root := newRootCommand("", []string{"--help"})
	root.InitDefaultVersionFlag()
	write(root)
	testkit.GoldenBytes(t, "../../docs/cli.md", append(bytes.TrimSpace(page.Bytes()), '\n'))
}

var (
	inheritedFlags = regexp.MustCompile(`(?s)### Options inherited from parent commands\n\n` + "```.*?```" + `\n`)
	seeAlso        = regexp.MustCompile(`(?s)### SEE ALSO\n.*`)
	synopsis       = regexp.MustCompile(`### Synopsis\n\n`)
)

// commandSection removes from a command's Markdown the parts that the page has only once, and
// the links.
func commandSection(text string) string {
	for _, needless := range []*regexp.Regexp{inheritedFlags, seeAlso, synopsis} {
		text = needless.ReplaceAllString(text, "")
	}
	return text
}
