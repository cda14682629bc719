package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// This file is what the shell says of gates, which work of an agent has to pass: the flags
// that ask for them, and their results.

// gateFlags ask for gates.
type gateFlags struct {
	Gates         []string `json:"gates,omitempty"`
	MaxIterations int      `json:"max_iterations,omitempty"`
}

// Add adds the flags to a command.
func (f *gateFlags) Add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.Gates, "gate", nil, "have the agent go on until `COMMAND` succeeds: a line for the shell, or a name of [[gates]]; may be given several times")
	flags.IntVar(&f.MaxIterations, "max-iterations", 0, "with --gate: give up after `N` turns (default: 5)")
}

// Check looks for what is wrong with them.
func (f *gateFlags) Check() error {
	switch {
	case f.MaxIterations < 0:
		return errors.New("--max-iterations takes what is above 0")
	case f.MaxIterations > 0 && len(f.Gates) == 0:
		return errors.New("--max-iterations says how often an agent may try to pass a --gate, and there is none")
	}
	return nil
}

// Into puts what was asked for into the parameters of a launch.
func (f *gateFlags) Into(params map[string]any) error {
	if err := f.Check(); err != nil {
		return err
	}
	if len(f.Gates) > 0 {
		params["gates"] = f.Gates
	}
	if f.MaxIterations > 0 {
		params["max_iterations"] = f.MaxIterations
	}
	return nil
}
