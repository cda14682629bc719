package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
)

// builtVersion is the version that the Go toolchain has noted in this binary.
func builtVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "0.1.0-dev"
}

func versionLine(version string) string {
	return fmt.Sprintf("duet-rpc %s (%s %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func newVersionCommand(s *invocation.Settings) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  "Print the version.\n\nExit status: 0.",
		Args:  invocation.NoArguments,
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
