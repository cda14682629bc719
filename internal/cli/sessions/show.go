package sessions

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/sessionview"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

const showHelp = `Show a session and the agent's last message.

--transcript shows all that was said and done, on a terminal with $PAGER or less.
--diff prints what the session changed as a unified diff, which git apply takes in
the session's directory. --export prints the conversation for other tools: md as
Markdown with tool calls and diffs, json as docs/export.md describes it.
`

func newShow(o Options) *cobra.Command {
	var whole, changes bool
	var export string
	cmd := &cobra.Command{
		Use: "show ID", Args: o.Exactly("ID"), ValidArgsFunction: o.Completes,
		Short:   "Show a session: its state, its transcript, its changes; export it",
		Long:    showHelp + o.Help,
		Example: "  duet-rpc session show last --transcript\n  duet-rpc session show task-0001 --diff | git apply\n  duet-rpc session show task-0001 --export md > session.md",
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("export") && export != "md" && export != "json" {
				return fmt.Errorf("--export takes md or json, got %q", export)
			}
			return o.Hub(cmd, func(ctx context.Context, c *client.Client) error {
				out := cmd.OutOrStdout()
				switch {
				case export != "":
					return printExport(ctx, c, out, args[0], export)
				case changes:
					return printDiff(ctx, c, out, args[0])
				case whole:
					t, err := turn.ReadConversation(ctx, c, args[0])
					if err != nil {
						return err
					}
					return term.Page(out, t.Text(o.look(out)))
				}
				s, raw, err := wire.SessionState(ctx, c, args[0])
				if err != nil {
					return err
				}
				if o.JSON() {
					return term.Raw(out, raw)
				}
				return sessionview.Print(out, s, !o.NoColor())
			})
		},
	}
	cmd.Flags().BoolVar(&whole, "transcript", false, "all that was said and done")
	cmd.Flags().BoolVar(&changes, "diff", false, "what it changed, as a unified diff")
	cmd.Flags().StringVar(&export, "export", "", "the conversation for other tools, as `md or json`")
	cmd.MarkFlagsMutuallyExclusive("transcript", "diff", "export")
	_ = cmd.RegisterFlagCompletionFunc("export", cobra.FixedCompletions([]string{"md", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// look is how a conversation looks on out.
func (o Options) look(out io.Writer) turn.Look {
	columns, _, _ := term.Size(out)
	return turn.Look{Columns: columns, Color: !o.NoColor() && term.Draws(out) && term.ShowsColors()}
}

// printExport prints a conversation for other tools, which get the words of others as
// they are; a terminal does not.
func printExport(ctx context.Context, c *client.Client, out io.Writer, id, format string) error {
	t, err := turn.ReadConversation(ctx, c, id)
	if err != nil {
		return err
	}
	text := t.Markdown()
	if format == "json" {
		raw, err := t.JSON()
		if err != nil {
			return err
		}
		text = term.Inert(raw) + "\n"
	}
	return printText(out, text)
}

func printDiff(ctx context.Context, c *client.Client, out io.Writer, id string) error {
	s, _, err := wire.SessionState(ctx, c, id)
	if err != nil {
		return err
	}
	text, err := turn.ReadDiff(ctx, c, s.ID)
	if err != nil {
		return err
	}
	if text == "" && term.IsTerminal(out) {
		_, err := fmt.Fprintln(out, term.Lines(out, "— "+term.Line(s.TaskID)+" has changed no file"))
		return err
	}
	return printText(out, text)
}

func printText(out io.Writer, text string) error {
	if term.IsTerminal(out) {
		return term.Page(out, term.Exact(text))
	}
	_, err := io.WriteString(out, text)
	return err
}

func joined(words []string) string { return strings.Join(words, " ") }
