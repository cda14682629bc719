package agents

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/registry/added"
)

const removeHelp = `Remove an agent that ` + "`duet-rpc agents add`" + ` added: what was written into your
config.toml for it, and what was unpacked. What would be removed is shown, and
nothing of it before you say yes. Conversations with it stay, and cannot be
continued. What npx and uvx have downloaded, and what the agent keeps in files of
its own, such as a login, stays: ` + "`duet-rpc agents logout`" + ` is for that.

It is refused while the agent works in this project.

Exit status: 0 if it was removed; 1 if not.`

func newRemove(o Options) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:               "remove NAME",
		Short:             "Remove an agent that was added from a registry",
		Long:              removeHelp,
		Args:              oneAgent,
		ValidArgsFunction: completeAdded,
		RunE:              func(cmd *cobra.Command, args []string) error { return remove(cmd, o, args[0], yes) },
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "remove it without asking")
	return cmd
}

func remove(cmd *cobra.Command, o Options, name string, yes bool) error {
	records, list, err := recorded([]string{name})
	if err != nil {
		return err
	}
	r, out := list[0], cmd.OutOrStdout()
	edit, err := config.Remove(name, r.Text, os.Getenv)
	if err != nil {
		return err
	}
	if working := o.Working(cmd, name); len(working) > 0 {
		return fmt.Errorf("%s works on %s: wait for its end, or `duet-rpc task cancel %s`", name, term.Line(working[0]), term.Line(working[0]))
	}
	directories := records.Mine(r, r.Directories)
	if !o.JSON() {
		printRemoval(out, r, edit, directories)
	}
	if !yes {
		if err := o.AskYes(cmd, "Remove it?", "not removed", "duet-rpc agents remove"); err != nil {
			return err
		}
	}
	if edit != nil {
		if err := edit.Write(); err != nil {
			return err
		}
	}
	if err := added.RemoveDirectories(directories); err != nil {
		return fmt.Errorf("%s is not configured any more, but not all of it could be removed; try again: %w", name, err)
	}
	if err := records.Forget(name); err != nil {
		return err
	}
	if o.JSON() {
		return term.JSON(out, map[string]any{"name": name, "removed": true, "directories": directories})
	}
	_, err = fmt.Fprintf(out, "%s is removed.\n", term.Line(name))
	return err
}

func printRemoval(out io.Writer, r added.Record, edit *config.Edit, directories []string) {
	fmt.Fprintf(out, "%s %s, which came from %s\n", term.Line(r.Name), term.Line(r.Version), term.Quoted(r.From))
	if edit != nil {
		fmt.Fprintf(out, "\nThis is taken out of %s:\n", term.Quoted(edit.File))
		printLines(out, "  ", r.Text)
	}
	if len(directories) > 0 {
		fmt.Fprintln(out, "\nThis is removed, with all that is in it:")
		for _, d := range directories {
			fmt.Fprintf(out, "  %s\n", term.Quoted(d))
		}
	}
	fmt.Fprintln(out, "\nConversations with it cannot be continued. Agents of it that work in other projects may fail.")
}
