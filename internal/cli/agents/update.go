package agents

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/registry"
	"github.com/duet-rpc/duet-rpc/internal/registry/added"
)

const updateHelp = `Bring agents up to date that ` + "`duet-rpc agents add`" + ` added: each as the registry that
it came from describes it now, or another that you name with --from. Which
version there is here and there, what would be downloaded and what would be
written is shown, and nothing of it is done before you say yes. With --check it
is only shown which versions there are. Registries are not read at any other time.

Conversations that are open go on with the version that they have, which stays
until the update after this one. If an update fails, all is as it was.

Exit status: 0 if each is up to date; 1 if one is not.`

type updateOptions struct {
	from, sha256    string
	all, check, yes bool
}

func newUpdate(o Options) *cobra.Command {
	var u updateOptions
	cmd := &cobra.Command{
		Use:               "update [NAME...]",
		Short:             "Bring agents up to date that were added from a registry",
		Long:              updateHelp,
		ValidArgsFunction: completeAdded,
		Args: func(cmd *cobra.Command, names []string) error {
			switch {
			case len(names) == 0 && !u.all && !u.check:
				return errors.New("say which agents, or --all of those that were added; --check looks what there is")
			case len(names) > 0 && u.all:
				return errors.New("say which agents, or --all, not both")
			case len(names) != 1 && u.sha256 != "":
				return errors.New("--sha256 is for one agent")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, names []string) error {
			records, list, err := recorded(names)
			if err != nil {
				return err
			}
			if u.check {
				return checkUpdates(cmd, o, u, list)
			}
			failed := 0
			for i, r := range list {
				if i > 0 && !o.JSON() {
					fmt.Fprintln(cmd.OutOrStdout())
				}
				if err := update(cmd, o, u, records, r); err != nil {
					if len(list) == 1 {
						return fmt.Errorf("%s is as it was: %w", r.Name, err)
					}
					fmt.Fprintf(cmd.ErrOrStderr(), "%s is as it was: %s\n", term.Line(r.Name), term.Exact(err.Error()))
					failed++
				}
			}
			if failed > 0 {
				return fmt.Errorf("%s could not be brought up to date", term.Count(failed, "agent"))
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&u.all, "all", false, "all agents that were added")
	f.BoolVar(&u.check, "check", false, "say which versions there are, and change nothing")
	f.StringVar(&u.from, "from", "", "the registry: a file, or an https URL (default: the one that the agent came from)")
	f.StringVar(&u.sha256, "sha256", "", "the checksum of the archive, where the registry has none")
	f.BoolVarP(&u.yes, "yes", "y", false, "do it without asking")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
	cmd.MarkFlagsMutuallyExclusive("check", "yes")
	return cmd
}

// completeAdded offers the names of agents that were added.
func completeAdded(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	records, err := readRecords()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return records.Names(), cobra.ShellCompDirectiveNoFileComp
}

// recorded are the records of the names, or all if there are none.
func recorded(names []string) (*added.Records, []added.Record, error) {
	records, err := readRecords()
	if err != nil {
		return nil, nil, err
	}
	if len(names) == 0 {
		names = records.Names()
	}
	if len(names) == 0 {
		return nil, nil, errors.New("no agent was added from a registry: `duet-rpc agents add` does that")
	}
	var list []added.Record
	for _, name := range names {
		r, found := records.Find(name)
		if !found {
			return nil, nil, fmt.Errorf("%s was not added by `duet-rpc agents add`, so it is not known where it came from: it is brought up to date, or removed, the way it was installed", name)
		}
		list = append(list, r)
	}
	return records, list, nil
}

// planOf is what is to be done to have an agent as its registry describes it now.
func planOf(cmd *cobra.Command, u updateOptions, r added.Record) (registry.Plan, registry.Source, string, error) {
	from := r.From
	if u.from != "" {
		from = absolute(u.from)
	}
	text, source, err := registry.Read(cmd.Context(), from, nil)
	if err != nil {
		return registry.Plan{}, source, from, fmt.Errorf("reading the registry: %w", err)
	}
	plan, err := planned(text, r.ID, registry.Choice{Via: r.Via, SHA256: u.sha256})
	return plan, source, from, err
}

// An offer is an agent as `duet-rpc agents update --check --json` shows it.
type offer struct {
	Name  string `json:"name"`
	Here  string `json:"version"`
	There string `json:"offered,omitempty"`
	From  string `json:"from"`
	Error string `json:"error,omitempty"`
}

func checkUpdates(cmd *cobra.Command, o Options, u updateOptions, list []added.Record) error {
	offers, failed := make([]offer, len(list)), 0
	for i, r := range list {
		plan, _, from, err := planOf(cmd, u, r)
		offers[i] = offer{Name: r.Name, Here: r.Version, There: plan.Entry.Version, From: from}
		if err != nil {
			offers[i].Error = err.Error()
			failed++
		}
	}
	if err := printOffers(cmd.OutOrStdout(), o, offers); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("of %s it cannot be said", term.Count(failed, "agent"))
	}
	return nil
}

func printOffers(out io.Writer, o Options, offers []offer) error {
	if o.JSON() {
		return term.JSON(out, offers)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "AGENT\tVERSION\tOFFERED\tFROM")
	for _, f := range offers {
		there := term.Line(f.There)
		switch {
		case f.Error != "":
			there = "? " + term.Line(f.Error)
		case f.There == f.Here:
			there = "the same"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", term.Line(f.Name), term.Line(f.Here), there, term.Quoted(f.From))
	}
	return table.Flush()
}

// update brings an agent up to date, if its user agrees.
func update(cmd *cobra.Command, o Options, u updateOptions, records *added.Records, r added.Record) error {
	plan, source, from, err := planOf(cmd, u, r)
	if err != nil {
		return err
	}
	edit, err := config.Replace(r.Text, agentOf(r.Name, plan), os.Getenv)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	is := added.Of(r.Name, from, plan, edit.Text, r)
	if is.Text == r.Text && is.SHA256 == r.SHA256 && is.Version == r.Version && is.From == r.From {
		if o.JSON() {
			return term.JSON(out, map[string]any{"name": r.Name, "version": r.Version, "updated": false})
		}
		_, err = fmt.Fprintf(out, "%s is up to date: %s\n", term.Line(r.Name), term.Line(r.Version))
		return err
	}
	if !o.JSON() {
		printUpdate(out, from, plan, edit, r)
	}
	if !u.yes {
		if err := o.AskYes(cmd, "Update it?", "not updated", "duet-rpc agents update"); err != nil {
			return err
		}
	}
	// Open conversations may go on with the version until now, with none before.
	old := slices.DeleteFunc(slices.Clone(is.Directories), func(d string) bool {
		return d == plan.Directory || len(r.Directories) > 0 && d == r.Directories[len(r.Directories)-1]
	})
	old = records.Mine(is, old)
	is.Directories = slices.DeleteFunc(is.Directories, func(d string) bool { return slices.Contains(old, d) })
	if err := carryOut(cmd.Context(), change{source, plan, edit, records, r, is}); err != nil {
		return err
	}
	if err := added.RemoveDirectories(old); err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "an old version could not be removed: %s\n", term.Exact(err.Error()))
	}
	if o.JSON() {
		return term.JSON(out, map[string]any{"name": r.Name, "version": is.Version, "updated": true, "command": plan.Command, "file": edit.File})
	}
	_, err = fmt.Fprintf(out, "%s is %s now: `duet-rpc agents check %s` starts it.\n", term.Line(r.Name), term.Line(is.Version), term.Line(r.Name))
	return err
}

// printUpdate shows what would be done, escaped: the registry is somebody else's.
func printUpdate(out io.Writer, from string, p registry.Plan, e *config.Edit, r added.Record) {
	fmt.Fprintf(out, "%s: %s → %s, as %s says\n", term.Line(r.Name), term.Line(r.Version), term.Line(p.Entry.Version), term.Quoted(from))
	if from != r.From {
		fmt.Fprintf(out, "It came from another registry: %s\n", term.Quoted(r.From))
	}
	printArchive(out, p)
	if e.Text != r.Text {
		fmt.Fprintf(out, "\nIn %s this\n", term.Quoted(e.File))
		printLines(out, "- ", r.Text)
		fmt.Fprintln(out, "becomes")
		printLines(out, "+ ", e.Text)
	}
	printCommand(out, p)
	fmt.Fprintf(out, "Conversations that are open go on with %s until their agents end.\n\n", term.Line(r.Version))
}
