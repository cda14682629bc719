package cli

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/config"
)

const configHelp = `Print the configuration in effect, and where each value comes from: a flag, the
environment, the project's .duet.toml, your config.toml, or a default. The values
of environment variables for agents are hidden.

With --defaults, print a configuration file that describes every key. With
--check, print only what is wrong.

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
	cmd.Flags().BoolVar(&check, "check", false, "print only what is wrong")
	cmd.MarkFlagsMutuallyExclusive("defaults", "check")
	return cmd
}

// checkConfig tells what is wrong with a configuration, or with the choice of
// its default agent.
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
		if err := term.JSON(out, problems); err != nil {
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
