package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/registry"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
)

// agentsDirectory is the directory for unpacked archives and records.
func agentsDirectory() (string, error) {
	data, err := project.DataHome(os.Getenv)
	return filepath.Join(data, "agents"), err
}

func readRecords() (*records, error) {
	directory, err := agentsDirectory()
	if err != nil {
		return nil, err
	}
	return AddedRead(directory)
}

// absolute makes the file name of a registry absolute; a URL stays as it is.
func absolute(from string) string {
	if registry.IsFile(from) {
		if path, err := filepath.Abs(from); err == nil {
			return path
		}
	}
	return from
}

// planned returns the plan for the agent with the given id, as the user's choice has it.
func planned(text []byte, id string, choice registry.Choice) (registry.Plan, error) {
	entry, err := registry.Parse(text, id)
	if err != nil {
		return registry.Plan{}, err
	}
	if choice.Directory, err = agentsDirectory(); err != nil {
		return registry.Plan{}, err
	}
	choice.Has = func(program string) bool {
		_, err := exec.LookPath(program)
		return err == nil
	}
	plan, err := entry.Plan(choice)
	if err != nil {
		return plan, fmt.Errorf("cannot get %s: %w", entry.ID, err)
	}
	return plan, nil
}

// agentOf returns the configuration entry for an agent that is installed by plan p.
func agentOf(name string, p registry.Plan) config.NewAgent {
	return config.NewAgent{Name: name, Title: p.Entry.Name, Command: p.Command, Env: p.Env}
}

// change is everything that adding or updating an agent changes.
type change struct {
	source  registry.Source
	plan    registry.Plan
	edit    *config.Edit
	records *records
	was, is Record // was is empty for a new agent
}

// carryOut downloads what the agent needs and then adds it to the configuration. If a step
// fails, the configuration is unchanged.
func carryOut(ctx context.Context, c change) error {
	if err := c.source.Install(ctx, c.plan); err != nil {
		return err
	}
	err := c.records.Put(c.is)
	if err == nil {
		if err = c.edit.Write(); err == nil {
			return nil
		}
		if c.was.Name == "" {
			err = errors.Join(err, c.records.Forget(c.is.Name))
		} else {
			err = errors.Join(err, c.records.Put(c.was))
		}
	}
	if c.plan.Directory != "" && !slices.Contains(c.was.Directories, c.plan.Directory) {
		err = errors.Join(err, RemoveDirectories(c.records.Mine(c.is, []string{c.plan.Directory})))
	}
	return err
}

// words returns a plan's command with its variables in shell syntax.
func words(p registry.Plan) []string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		words = append(words, name+"="+shellcommand.Argument(p.Env[name]))
	}
	for _, arg := range p.Command {
		words = append(words, shellcommand.Argument(arg))
	}
	return words
}

const addHelp = `Add an agent of a registry to your config.toml. --from names the registry, a file or
an https URL: an agent.json, or a registry.json with many agents, such as that of the
Agent Client Protocol, https://github.com/agentclientprotocol/registry. NAME is the
agent's id there, and its name here unless --as gives another.

You see what would be downloaded, written and run, and are asked first. An archive
needs a checksum (SHA-256): the registry's, or yours.

Exit status: 0 if the agent was added; 1 if not.`

type addOptions struct {
	from, as, via, sha256 string
	yes                   bool
}

func newAdd(s *settings) *cobra.Command {
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
		RunE: func(cmd *cobra.Command, args []string) error { return add(cmd, s, a, strings.Join(args, "")) },
	}
	f := cmd.Flags()
	f.StringVar(&a.from, "from", "", "the registry: a file, or an https URL")
	f.StringVar(&a.as, "as", "", "the agent's name here (default: its id in the registry)")
	f.StringVar(&a.via, "via", "", "how to install it: binary, npx or uvx (default: the first that works here)")
	f.StringVar(&a.sha256, "sha256", "", "the checksum of the archive, where the registry has none")
	f.BoolVarP(&a.yes, "yes", "y", false, "add it without asking")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
	_ = cmd.RegisterFlagCompletionFunc("via",
		cobra.FixedCompletions([]string{registry.ViaBinary, registry.ViaNPX, registry.ViaUVX}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func add(cmd *cobra.Command, s *settings, a addOptions, id string) error {
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
	if !s.JSON {
		printPlan(cmd.OutOrStdout(), a.from, plan, edit)
	}
	if !a.yes {
		if err := askYes(cmd, s, "Add it?", "not added", "duet-rpc agents add"); err != nil {
			return err
		}
	}
	was, _ := records.Find(agent.Name) // of an agent that the user removed from the configuration
	if err := carryOut(
		cmd.Context(), change{source, plan, edit, records, was, AddedOf(agent.Name, absolute(a.from), plan, edit.Text, was)},
	); err != nil {
		return err
	}
	if s.JSON {
		return term.JSON(cmd.OutOrStdout(),
			map[string]any{"name": agent.Name, "version": plan.Entry.Version, "command": plan.Command, "file": edit.File})
	}
	_, err = fmt.Fprintf(
		cmd.OutOrStdout(), "%s is added: `duet-rpc agents check %s` starts it, and says whether you are signed in.\n", term.Line(agent.Name),
		term.Line(agent.Name),
	)
	return err
}

// printPlan shows what add would do. It escapes the text, because the registry is third-party.
func printPlan(out io.Writer, from string, p registry.Plan, a *config.Edit) {
	fmt.Fprintf(out, "%s %s, as %s says: %s\n", term.Line(p.Entry.Name), term.Line(p.Entry.Version), term.Quoted(from),
		term.Line(p.Entry.Description))
	printArchive(out, p)
	fmt.Fprintf(out, "\nThis is appended to %s:\n", term.Quoted(a.File))
	printLines(out, "  ", a.Text)
	printCommand(out, p)
	fmt.Fprintln(out)
}

// printArchive shows what would be downloaded.
func printArchive(out io.Writer, p registry.Plan) {
	if p.Archive != "" {
		fmt.Fprintf(out, "\nThis is downloaded and unpacked into %s:\n  %s\n  sha256 %s\n", term.Quoted(p.Directory), term.Line(p.Archive),
			p.SHA256)
	}
}

// printLines prints each line of a text with a prefix.
func printLines(out io.Writer, prefix, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(out, "%s%s\n", prefix, term.Line(strings.TrimSuffix(line, "\n")))
	}
}

// printCommand shows the command that would run.
func printCommand(out io.Writer, p registry.Plan) {
	fmt.Fprintf(out, "\nFrom then on each prompt to the agent runs this as you:\n  %s\n", term.Line(strings.Join(words(p), " ")))
	for _, note := range p.Notes {
		fmt.Fprintf(out, "%s\n", term.Line(note))
	}
}

const removeHelp = `Remove an agent that ` + "`duet-rpc agents add`" + ` added: its part of your
config.toml, and its unpacked files. You see what would be removed, and are asked
first. Sessions with it stay, and cannot be continued. Downloads of npx and uvx
stay, and so do the agent's own files, such as a login: ` + "`duet-rpc agents logout`" + ` signs out.

An agent that works in this project cannot be removed.

Exit status: 0 if it was removed; 1 if not.`

func newRemove(s *settings) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:               "remove NAME",
		Short:             "Remove an agent that was added from a registry",
		Long:              removeHelp,
		Args:              oneAgent,
		ValidArgsFunction: completeAdded,
		RunE:              func(cmd *cobra.Command, args []string) error { return remove(cmd, s, args[0], yes) },
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "remove it without asking")
	return cmd
}

func remove(cmd *cobra.Command, s *settings, name string, yes bool) error {
	records, list, err := recorded([]string{name})
	if err != nil {
		return err
	}
	r, out := list[0], cmd.OutOrStdout()
	edit, err := config.Remove(name, r.Text, os.Getenv)
	if err != nil {
		return err
	}
	if working := workingTurns(cmd, s, name); len(working) > 0 {
		return fmt.Errorf("%s works on %s: wait for its end, or `duet-rpc session interrupt %s`", name, term.Line(working[0]),
			term.Line(working[0]))
	}
	directories := records.Mine(r, r.Directories)
	if !s.JSON {
		printRemoval(out, r, edit, directories)
	}
	if !yes {
		if err := askYes(cmd, s, "Remove it?", "not removed", "duet-rpc agents remove"); err != nil {
			return err
		}
	}
	if edit != nil {
		if err := edit.Write(); err != nil {
			return err
		}
	}
	if err := RemoveDirectories(directories); err != nil {
		return fmt.Errorf("%s is no longer configured, but not all of it could be removed; try again: %w", name, err)
	}
	if err := records.Forget(name); err != nil {
		return err
	}
	if s.JSON {
		return term.JSON(out, map[string]any{"name": name, "removed": true, "directories": directories})
	}
	_, err = fmt.Fprintf(out, "%s is removed.\n", term.Line(name))
	return err
}

func printRemoval(out io.Writer, r Record, edit *config.Edit, directories []string) {
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
	fmt.Fprintln(out, "\nSessions with it cannot be continued. Agents of it that work in other projects may fail.")
}

const updateHelp = `Update agents that ` + "`duet-rpc agents add`" + ` added, from the registry
that each came from, or another that you name with --from. You see the versions, the
downloads and the changes, and are asked first. --check only shows the versions.
Registries are read at no other time.

Open sessions continue with their version, which stays until the next update. If
an update fails, nothing is changed.

Exit status: 0 if each is up to date; 1 if one is not.`

type updateOptions struct {
	from, sha256    string
	all, check, yes bool
}

func newUpdate(s *settings) *cobra.Command {
	var u updateOptions
	cmd := &cobra.Command{
		Use:               "update [NAME...]",
		Short:             "Update agents that were added from a registry",
		Long:              updateHelp,
		ValidArgsFunction: completeAdded,
		Args: func(cmd *cobra.Command, names []string) error {
			switch {
			case len(names) == 0 && !u.all && !u.check:
				return errors.New("name the agents, or use --all; --check shows the versions")
			case len(names) > 0 && u.all:
				return errors.New("name the agents or use --all, not both")
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
				return checkUpdates(cmd, s, u, list)
			}
			failed := 0
			for i, r := range list {
				if i > 0 && !s.JSON {
					fmt.Fprintln(cmd.OutOrStdout())
				}
				if err := update(cmd, s, u, records, r); err != nil {
					if len(list) == 1 {
						return fmt.Errorf("%s was not changed: %w", r.Name, err)
					}
					fmt.Fprintf(cmd.ErrOrStderr(), "%s was not changed: %s\n", term.Line(r.Name), term.Exact(err.Error()))
					failed++
				}
			}
			if failed > 0 {
				return fmt.Errorf("%s could not be updated", term.Count(failed, "agent"))
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

// completeAdded offers the names of the added agents.
func completeAdded(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	records, err := readRecords()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return records.Names(), cobra.ShellCompDirectiveNoFileComp
}

// recorded returns the records of the named agents, or all records if no name is given.
func recorded(names []string) (*records, []Record, error) {
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
	var list []Record
	for _, name := range names {
		r, found := records.Find(name)
		if !found {
			return nil, nil, fmt.Errorf("%s was not added by `duet-rpc agents add`: update or remove it the way it was installed", name)
		}
		list = append(list, r)
	}
	return records, list, nil
}

// planOf returns the plan for an agent as its registry describes it now.
func planOf(cmd *cobra.Command, u updateOptions, r Record) (registry.Plan, registry.Source, string, error) {
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

// offer is an agent as `duet-rpc agents update --check --json` shows it.
type offer struct {
	Name  string `json:"name"`
	Here  string `json:"version"`
	There string `json:"offered,omitempty"`
	From  string `json:"from"`
	Error string `json:"error,omitempty"`
}

func checkUpdates(cmd *cobra.Command, s *settings, u updateOptions, list []Record) error {
	offers, failed := make([]offer, len(list)), 0
	for i, r := range list {
		plan, _, from, err := planOf(cmd, u, r)
		offers[i] = offer{Name: r.Name, Here: r.Version, There: plan.Entry.Version, From: from}
		if err != nil {
			offers[i].Error = err.Error()
			failed++
		}
	}
	if err := printOffers(cmd.OutOrStdout(), s, offers); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("cannot check %s for updates", term.Count(failed, "agent"))
	}
	return nil
}

func printOffers(out io.Writer, s *settings, offers []offer) error {
	if s.JSON {
		return term.JSON(out, map[string]any{"agents": offers})
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

// update brings an agent up to date if the user agrees.
func update(cmd *cobra.Command, s *settings, u updateOptions, records *records, r Record) error {
	plan, source, from, err := planOf(cmd, u, r)
	if err != nil {
		return err
	}
	edit, err := config.Replace(r.Text, agentOf(r.Name, plan), os.Getenv)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	is := AddedOf(r.Name, from, plan, edit.Text, r)
	if is.Text == r.Text && is.SHA256 == r.SHA256 && is.Version == r.Version && is.From == r.From {
		if s.JSON {
			return term.JSON(out, map[string]any{"name": r.Name, "version": r.Version, "updated": false})
		}
		_, err = fmt.Fprintf(out, "%s is up to date: %s\n", term.Line(r.Name), term.Line(r.Version))
		return err
	}
	if !s.JSON {
		printUpdate(out, from, plan, edit, r)
	}
	if !u.yes {
		if err := askYes(cmd, s, "Update it?", "not updated", "duet-rpc agents update"); err != nil {
			return err
		}
	}
	// Open sessions may still use the previous version, but none before it.
	old := slices.DeleteFunc(slices.Clone(is.Directories), func(d string) bool {
		return d == plan.Directory || len(r.Directories) > 0 && d == r.Directories[len(r.Directories)-1]
	})
	old = records.Mine(is, old)
	is.Directories = slices.DeleteFunc(is.Directories, func(d string) bool { return slices.Contains(old, d) })
	if err := carryOut(cmd.Context(), change{source, plan, edit, records, r, is}); err != nil {
		return err
	}
	if err := RemoveDirectories(old); err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "an old version could not be removed: %s\n", term.Exact(err.Error()))
	}
	if s.JSON {
		return term.JSON(out, map[string]any{"name": r.Name, "version": is.Version, "updated": true, "command": plan.Command, "file": edit.File})
	}
	_, err = fmt.Fprintf(out, "%s is %s now: `duet-rpc agents check %s` starts it.\n", term.Line(r.Name), term.Line(is.Version),
		term.Line(r.Name))
	return err
}

// printUpdate shows what update would do. It escapes the text, because the registry is
// third-party.
func printUpdate(out io.Writer, from string, p registry.Plan, e *config.Edit, r Record) {
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
	fmt.Fprintf(out, "Open sessions go on with %s until their agents end.\n\n", term.Line(r.Version))
}

// Records of added agents: their registry and the lines written into the configuration for
// them. An update or a removal changes only these lines.

// Record is the record of an added agent.
type Record struct {
	Name    string `json:"name"`    // of the agent in the configuration
	From    string `json:"from"`    // the registry: an absolute file name or a URL
	ID      string `json:"id"`      // of the agent in the registry
	Version string `json:"version"` // in the registry, when the agent was added or last updated
	Via     string `json:"via"`     // as in [registry.Plan]

	SHA256      string   `json:"sha256,omitempty"`      // of the archive, if there is one
	Text        string   `json:"text"`                  // what was written into the configuration
	Directories []string `json:"directories,omitempty"` // of unpacked archives; the last one is in use
}

// AddedOf returns the record of a plan that has been carried out for the named agent. text is
// its configuration entry. was is the agent's previous record, or empty.
func AddedOf(name, from string, p registry.Plan, text string, was Record) Record {
	r := Record{Name: name, From: from, ID: p.Entry.ID, Version: p.Entry.Version, Via: p.Via, SHA256: p.SHA256, Text: text}
	r.Directories = slices.DeleteFunc(slices.Clone(was.Directories), func(d string) bool { return d == p.Directory })
	if p.Directory != "" {
		r.Directories = append(r.Directories, p.Directory)
	}
	return r
}

// records are a user's records, by agent name.
type records struct {
	directory string
	byName    map[string]Record
}

const (
	suffix    = ".json"
	maxRecord = 1 << 20 // bytes
)

// AddedRead reads the records in a directory, which need not exist.
func AddedRead(directory string) (*records, error) {
	r := &records{directory: directory, byName: make(map[string]Record)}
	files, err := os.ReadDir(directory)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, f := range files {
		name, is := strings.CutSuffix(f.Name(), suffix)
		if info, err := f.Info(); !is || err != nil || !info.Mode().IsRegular() || info.Size() > maxRecord {
			continue
		}
		text, err := os.ReadFile(filepath.Join(directory, f.Name()))
		if err != nil {
			return nil, err
		}
		var one Record
		if err := json.Unmarshal(text, &one); err != nil || one.Name != name {
			return nil, fmt.Errorf("%s is damaged: remove it, and the agent that it names from your configuration",
				filepath.Join(directory, f.Name()))
		}
		r.byName[name] = one
	}
	return r, nil
}

// Find returns the record of the named agent.
func (r *records) Find(name string) (Record, bool) {
	one, found := r.byName[name]
	return one, found
}

// Names returns the names of the agents, sorted.
func (r *records) Names() []string {
	names := make([]string, 0, len(r.byName))
	for name := range r.byName {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Put stores a record atomically.
func (r *records) Put(one Record) error {
	text, err := json.MarshalIndent(one, "", "  ")
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(r.directory, 0o700); err != nil {
		return err
	}
	if err := durable.Replace(filepath.Join(r.directory, one.Name+suffix), append(text, '\n'), 0o600); err != nil {
		return err
	}
	r.byName[one.Name] = one
	return nil
}

// Forget removes the record of the named agent.
func (r *records) Forget(name string) error {
	delete(r.byName, name)
	return durable.Remove(filepath.Join(r.directory, name+suffix))
}

// Mine returns those of an agent's directories that may be removed: no other agent uses them,
// and they are below the archive directory, whatever the record says.
func (r *records) Mine(one Record, directories []string) []string {
	return slices.DeleteFunc(slices.Clone(directories), func(d string) bool {
		for name, other := range r.byName {
			if name != one.Name && slices.Contains(other.Directories, d) {
				return true
			}
		}
		below, err := filepath.Rel(r.directory, d)
		return err != nil || !filepath.IsLocal(below) || strings.Count(filepath.ToSlash(below), "/") != 1
	})
}

// RemoveDirectories removes directories that [Records.Mine] returned, and their parents if
// those are empty then.
func RemoveDirectories(directories []string) error {
	var failed error
	for _, d := range directories {
		failed = errors.Join(failed, os.RemoveAll(d))
		_ = os.Remove(filepath.Dir(d)) // fails if another version is there
	}
	return failed
}
