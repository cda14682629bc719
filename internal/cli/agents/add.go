package agents

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/registry"
	"github.com/duet-rpc/duet-rpc/internal/registry/added"
)

const addHelp = `Add an agent to your config.toml, as a registry describes it. The registry is the
file or the https URL that you name with --from: an agent.json, or a
registry.json with many agents, as the Agent Client Protocol's own,
https://github.com/agentclientprotocol/registry. NAME is the agent's id there,
and what it is called here unless --as says otherwise.

What would be downloaded, written and run is shown, and nothing of it is done
before you say yes. An archive is taken only with a checksum (SHA-256): the
registry's, or the one that you give.

Exit status: 0 if the agent was added; 1 if not.`

type addOptions struct {
	from, as, via, sha256 string
	yes                   bool
}

func newAdd(o Options) *cobra.Command {
	var a addOptions
	cmd := &cobra.Command{
		Use:   "add [NAME] --from FILE|URL",
		Short: "Add an agent that a registry describes",
		Long:  addHelp,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return fmt.Errorf("%s takes the name of one agent, got %q", cmd.CommandPath(), args)
			case a.from == "":
				return errors.New("say with --from which registry describes the agent: a file, or an https URL")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return add(cmd, o, a, strings.Join(args, "")) },
	}
	f := cmd.Flags()
	f.StringVar(&a.from, "from", "", "the registry: a file, or an https URL")
	f.StringVar(&a.as, "as", "", "what the agent is called here (default: its id in the registry)")
	f.StringVar(&a.via, "via", "", "how it is got: binary, npx or uvx (default: the first of these that works here)")
	f.StringVar(&a.sha256, "sha256", "", "the checksum of the archive, where the registry has none")
	f.BoolVarP(&a.yes, "yes", "y", false, "add it without asking")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
	_ = cmd.RegisterFlagCompletionFunc("via", cobra.FixedCompletions([]string{registry.ViaBinary, registry.ViaNPX, registry.ViaUVX}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func add(cmd *cobra.Command, o Options, a addOptions, id string) error {
	text, source, err := registry.Read(cmd.Context(), a.from, nil)
	if err != nil {
		return fmt.Errorf("reading the registry: %w", err)
	}
	records, err := readRecords()
	if err != nil {
		return err
	}
	plan, err := planned(text, id, registry.Choice{Via: a.via, SHA256: a.sha256})
	if err != nil {
		return err
	}
	agent := agentOf(cmp.Or(a.as, plan.Entry.ID), plan)
	edit, err := config.Add(agent, os.Getenv)
	if err != nil {
		return err
	}
	if !o.JSON() {
		printPlan(cmd.OutOrStdout(), a.from, plan, edit)
	}
	if !a.yes {
		if err := o.AskYes(cmd, "Add it?", "not added", "duet-rpc agents add"); err != nil {
			return err
		}
	}
	was, _ := records.Find(agent.Name) // of one that its user took out of the configuration
	if err := carryOut(cmd.Context(), change{source, plan, edit, records, was, added.Of(agent.Name, absolute(a.from), plan, edit.Text, was)}); err != nil {
		return err
	}
	if o.JSON() {
		return term.JSON(cmd.OutOrStdout(), map[string]any{"name": agent.Name, "version": plan.Entry.Version, "command": plan.Command, "file": edit.File})
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is added: `duet-rpc agents check %s` starts it, and says whether you are signed in.\n", term.Line(agent.Name), term.Line(agent.Name))
	return err
}

// printPlan shows what would be done, escaped: the registry is somebody else's.
func printPlan(out io.Writer, from string, p registry.Plan, a *config.Edit) {
	fmt.Fprintf(out, "%s %s, as %s says: %s\n", term.Line(p.Entry.Name), term.Line(p.Entry.Version), term.Quoted(from), term.Line(p.Entry.Description))
	printArchive(out, p)
	fmt.Fprintf(out, "\nThis is appended to %s:\n", term.Quoted(a.File))
	printLines(out, "  ", a.Text)
	printCommand(out, p)
	fmt.Fprintln(out)
}

// printArchive shows what is downloaded.
func printArchive(out io.Writer, p registry.Plan) {
	if p.Archive != "" {
		fmt.Fprintf(out, "\nThis is downloaded and unpacked into %s:\n  %s\n  sha256 %s\n", term.Quoted(p.Directory), term.Line(p.Archive), p.SHA256)
	}
}

// printLines prints the lines of a text behind something.
func printLines(out io.Writer, behind, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(out, "%s%s\n", behind, term.Line(strings.TrimSuffix(line, "\n")))
	}
}

// printCommand shows what runs.
func printCommand(out io.Writer, p registry.Plan) {
	fmt.Fprintf(out, "\nFrom then on this runs as you whenever the agent is asked:\n  %s\n", term.Line(strings.Join(words(p), " ")))
	for _, note := range p.Notes {
		fmt.Fprintf(out, "%s\n", term.Line(note))
	}
}
