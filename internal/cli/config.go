package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/config"
)

const configHelp = `Print the configuration in effect, and where each value comes from: the
environment, the project's .duet.toml, your config.toml, or a default. The values
of environment variables for agents are hidden.

With --defaults, print a configuration file that describes every key. With
--check, print only problems.

Exit status: 0 if the configuration is right; 1 if anything in it is wrong.`

func newConfigCommand(s *settings) *cobra.Command {
	var defaults, check bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print the configuration and where it comes from",
		Long:  configHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			if defaults {
				_, err := io.WriteString(out, config.Defaults())
				return err
			}
			c, err := s.Config()
			if check {
				return checkConfig(out, c, err, s.JSON)
			}
			if err != nil {
				return config.Explain(err)
			}
			if s.JSON {
				return term.JSON(out, map[string]any{"values": c.Values(), "untrusted": append([]string{}, c.Untrusted...)})
			}
			return printValues(out, c)
		},
	}
	cmd.Flags().BoolVar(&defaults, "defaults", false, "print a configuration file that describes every key")
	cmd.Flags().BoolVar(&check, "check", false, "print only problems")
	cmd.MarkFlagsMutuallyExclusive("defaults", "check")
	return cmd
}

// checkConfig prints what is wrong with the configuration or the choice of its default agent.
func checkConfig(out io.Writer, c *config.Config, err error, asJSON bool) error {
	problems := []config.Problem{}
	var wrong *config.Error
	var unknown *config.UnknownAgentError
	switch {
	case errors.As(err, &wrong):
		problems = wrong.Problems
	case err != nil:
		return err
	default:
		if _, err := c.Resolve(""); errors.As(err, &unknown) {
			problems = append(problems, config.Problem{Name: "default_agent", Message: err.Error()})
		}
	}
	if asJSON {
		if err := term.JSON(out, map[string]any{"problems": problems}); err != nil {
			return err
		}
	} else {
		for _, p := range problems {
			fmt.Fprintln(out, term.Exact(p.String()))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("the configuration has %s; `duet-rpc config --defaults` describes every key", term.Count(len(problems), "mistake"))
	}
	return nil
}

func printValues(out io.Writer, c *config.Config) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KEY\tSOURCE\tVALUE")
	for _, v := range c.Values() {
		source := v.Source
		if v.Waits {
			source += ", waits for trust"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", term.Line(v.Key), term.Line(source), term.Exact(config.ValueText(v.Value)))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, note := range c.Notes {
		fmt.Fprintf(out, "\n%s\n", term.Line(note))
	}
	for _, file := range c.Untrusted {
		fmt.Fprintf(out, "\n%s is not trusted: see what it asks for and allow it with `duet-rpc trust`\n", term.Quoted(file))
	}
	return nil
}

const trustHelp = `Show what the project's .duet.toml asks for: the agent that it chooses, agents,
builds, gates and triggers that it defines, worktrees, keys, a preview outside
the project, limits and budgets that it raises, and tool calls that it allows.
If you say yes, trust it. Until then none of that has an effect; lower limits
and deny rules always have.

You trust the file as it is: whenever it changes, you are asked again. The
programs that it names are not examined.

Exit status: 0 if the file is trusted, shown or no longer trusted; 1 if there was
no terminal to ask on and no --yes, or the answer was no, or there is no file.`

// trustOptions are the flags of the command.
type trustOptions struct {
	revoke, show, yes bool
}

func newTrustCommand(s *settings) *cobra.Command {
	var o trustOptions
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "Review what the project's configuration would run, and allow it",
		Long:  trustHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := s.Project()
			if err != nil {
				return err
			}
			store, err := config.DefaultTrust(os.Getenv)
			if err != nil {
				return err
			}
			if o.revoke {
				return revoke(cmd, s, store, p.ConfigFile())
			}
			file, err := config.Inspect(p.ConfigFile(), os.Getenv)
			if errors.Is(err, fs.ErrNotExist) {
				return errors.New(strings.Join(
					append([]string{fmt.Sprintf("the project %s has no .duet.toml, so there is nothing to trust", p.Root)}, p.Notes...), "; ",
				))
			}
			if err != nil {
				return config.Explain(err)
			}
			return trustFile(cmd, s, store, file, o)
		},
	}
	cmd.Flags().BoolVar(&o.revoke, "revoke", false, "no longer trust the file, and end the agents that it defines")
	cmd.Flags().BoolVar(&o.show, "show", false, "only show the file's content and whether it is trusted")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "trust without asking")
	cmd.MarkFlagsMutuallyExclusive("revoke", "show", "yes")
	return cmd
}

func revoke(cmd *cobra.Command, s *settings, store *config.Store, path string) error {
	if err := store.Revoke(path); err != nil {
		return err
	}
	if s.JSON {
		return term.JSON(cmd.OutOrStdout(), map[string]any{"file": path, "trusted": false})
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is no longer trusted; a running daemon ends the agents that it defines.\n", term.Quoted(path))
	return err
}

func trustFile(cmd *cobra.Command, s *settings, store *config.Store, file *config.Inspection, o trustOptions) error {
	trusted, err := file.Trusted(store)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if s.JSON {
		// The caller is a program: it cannot be asked, and gets the outcome.
		w := out
		defer func() {
			_ = term.JSON(w, map[string]any{"file": file.File, "trusted": trusted, "asks": append([]config.Value{}, file.Asks...)})
		}()
		out = io.Discard
	}
	printAsks(out, file)
	switch {
	case len(file.Asks) == 0:
		return nil
	case trusted:
		fmt.Fprintln(out, "You trust it.")
		return nil
	case o.show:
		fmt.Fprintln(out, "You do not trust it.")
		return nil
	case !o.yes:
		if err := askYes(cmd, s, "Trust it?", "not trusted", "duet-rpc trust"); err != nil {
			return err
		}
	}
	if err := file.Trust(store); err != nil {
		return err
	}
	trusted = true
	fmt.Fprintln(out, "You trust it now, until it changes.")
	return nil
}

// printAsks shows what a file asks for. It escapes the text, because the file is third-party.
func printAsks(out io.Writer, file *config.Inspection) {
	if len(file.Asks) == 0 {
		fmt.Fprintf(out, "Nothing in %s needs your trust.\n", term.Quoted(file.File))
		return
	}
	fmt.Fprintf(out, "%s asks for this:\n", term.Quoted(file.File))
	for _, v := range file.Asks {
		fmt.Fprintf(out, "  %s = %s\n", term.Line(v.Key), term.Exact(config.ValueText(v.Value)))
	}
}
