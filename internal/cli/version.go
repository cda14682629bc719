package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// treeVersion is the release that this source tree becomes.
const treeVersion = "0.1.0"

// builtVersion is the version of this binary, as the Go toolchain has noted it.
func builtVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return treeVersion + "-dev"
	}
	return versionOf(info)
}

// pseudoVersion matches the version that Go gives a commit without a tag.
var pseudoVersion = lazyregexp.New(`[-.]\d{14}-([0-9a-f]{12})(\+dirty)?$`)

// versionOf is the tag of a build, without its v. A build of another commit has the
// version of the tree and names the commit: Go would call it v0.0.0.
func versionOf(info *debug.BuildInfo) string {
	tag := info.Main.Version
	commit, dirty := "", strings.HasSuffix(tag, "+dirty")
	if pseudo := pseudoVersion().FindStringSubmatch(tag); pseudo != nil {
		commit = pseudo[1]
	} else if tag != "" && tag != "(devel)" && !dirty {
		return strings.TrimPrefix(tag, "v")
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	version := treeVersion + "-dev"
	if commit != "" {
		version += "+" + commit[:min(7, len(commit))]
		if dirty {
			version += ".dirty"
		}
	}
	return version
}

func versionLine(version string) string {
	return fmt.Sprintf("duet-rpc %s (%s %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func newVersionCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  "Print the version.\n\nExit status: 0.",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !s.JSON {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine(s.Version))
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]string{
				"version": s.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
			})
		},
	}
}

const pathsHelp = `Print where everything of this project is: its root, the directory of its state,
the database, the hub's socket, the daemon's log, and the files of the
configuration. A path is printed whether or not there is a file.

Exit status: 0 if the project was found, 1 if not.`

func newPathsCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "paths",
		Short: "Print where the project's files are",
		Long:  pathsHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := s.Paths()
			if err != nil {
				return err
			}
			if s.JSON {
				return term.JSON(cmd.OutOrStdout(), found)
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, row := range [][2]string{
				{"root", found.Root},
				{"state", found.State},
				{"database", found.Database},
				{"socket", found.Socket},
				{"log", found.Log},
				{"project's configuration", found.Project},
				{"your configuration", found.User},
			} {
				fmt.Fprintf(table, "%s\t%s\n", row[0], term.Line(row[1]))
			}
			return table.Flush()
		},
	}
}
