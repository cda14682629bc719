package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

const projectsHelp = `List the projects with sessions on this machine, the last used first:
how many sessions each has, the size of its state, and whether its directory
is missing.

A project that was moved on one disk finds its sessions by itself. A copy of a
project begins with none.

Exit status: 0 if they could be listed, 1 if not.`

const projectsKeepHelp = `Restore the rules, trust and answers from before the project's directory was deleted
and created again. Its sessions are kept in any case. Until then nothing is allowed
in the new directory, because it may be anything.

Exit status: 0 if what you allowed counts, 1 if the project has no sessions.`

func newProjectsCommand(s *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "projects",
		Short: "List the projects with sessions, or move or forget them",
		Long:  projectsHelp,
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return listProjects(cmd, s) },
	}
	cmd.AddCommand(newProjectsMoveCommand(s), newProjectsForgetCommand(s), newProjectsKeepCommand(s))
	return cmd
}

func listProjects(cmd *cobra.Command, s *settings) error {
	list, err := host.Projects{Settings: &s.Settings}.List(cmd.Context())
	if err != nil {
		return err
	}
	if s.JSON {
		return term.JSON(cmd.OutOrStdout(), protocol.ProjectList{Projects: list})
	}
	table := term.NewTable(cmd.OutOrStdout(), "PROJECT", "SESSIONS", "SIZE", "USED", "NOTE")
	table.Empty("no project has sessions yet")
	for _, p := range list {
		note := p.Error
		switch {
		case p.Missing:
			note = "missing"
		case p.Replaced:
			note = "replaced; see `duet-rpc projects keep`"
		}
		table.Row(term.Line(term.HomePath(p.Root)), term.Number(p.Sessions), fmt.Sprintf("%.1f MB", float64(p.Bytes)/1e6),
			term.Age(p.LastUsed), note)
	}
	return table.Flush()
}

func newProjectsMoveCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "move OLD NEW",
		Short: "Give the sessions of the project at OLD to the directory NEW",
		Long: "Give the sessions of the project at OLD to the directory NEW, for example after a move\nto another disk. OLD need not exist; " +
			"NEW must have no sessions.\n\nExit status: 0 if NEW has the sessions, 1 if not.",
		Args: exactly("OLD", "NEW"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := (host.Projects{Settings: &s.Settings}).Move(cmd.Context(), args[0], args[1]); err != nil {
				return err
			}
			return printDone(cmd, s, map[string]any{"from": args[0], "to": args[1]}, "the sessions of %s belong to %s now", args[0], args[1])
		},
	}
}

func newProjectsForgetCommand(s *settings) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "forget PATH",
		Short: "Delete all sessions of the project at PATH for good",
		Long: "Delete all sessions, rules and logs of the project at PATH for good. The\nfiles of the project are left alone. PATH need not " +
			"exist. Git worktrees of\nsessions are deleted; if one has work that is not landed, nothing is.\n\nExit status: 0 if all was deleted; " +
			"1 if nothing was, because a daemon runs there or the answer was no.",
		Args: exactly("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes {
				question := fmt.Sprintf("Delete all sessions of %s for good?", term.Quoted(args[0]))
				if err := askYes(cmd, s, question, "nothing was deleted", "duet-rpc projects forget"); err != nil {
					return err
				}
			}
			kept, err := host.Projects{Settings: &s.Settings}.Forget(cmd.Context(), args[0])
			if kept != "" {
				progress(cmd, s, "the worktrees in %s stay: their repository is gone", term.Line(kept))
			}
			if err != nil {
				return err
			}
			return printDone(cmd, s, map[string]any{"forgotten": args[0]}, "all sessions of %s are deleted", args[0])
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "delete without asking")
	return cmd
}

func newProjectsKeepCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "keep",
		Short: "Restore the rules, trust and answers from before the directory was replaced",
		Long:  projectsKeepHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := s.Project()
			if err != nil {
				return err
			}
			kept, err := host.KeepProject(p)
			switch {
			case err != nil:
				return err
			case !kept:
				return printDone(cmd, s, map[string]any{"root": p.Root, "kept": false}, "%s was not replaced: everything that you allowed counts",
					p.Root)
			}
			return printDone(cmd, s, map[string]any{"root": p.Root, "kept": true}, "what you allowed in %s counts again", p.Root)
		},
	}
}

// printDone prints the result of a command.
func printDone(cmd *cobra.Command, s *settings, asJSON map[string]any, format string, paths ...string) error {
	if s.JSON {
		return term.JSON(cmd.OutOrStdout(), asJSON)
	}
	args := make([]any, len(paths))
	for i, path := range paths {
		args[i] = term.Line(path)
	}
	text := fmt.Sprintf(format, args...)
	_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.ToUpper(text[:1])+text[1:]+".")
	return err
}
