package main

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func versionLine() string {
	return fmt.Sprintf("duet-rpc %s (%s %s/%s)", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func newVersionCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  "Print the version.\n\nExit status: 0.",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !s.json {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]string{
				"version": buildVersion(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
			})
		},
	}
}
