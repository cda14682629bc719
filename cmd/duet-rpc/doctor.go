package main

import "github.com/spf13/cobra"

func newDoctorCommand(s *settings) *cobra.Command {
	return &cobra.Command{Use: "doctor"}
}
