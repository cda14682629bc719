package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/sandbox"
)

// sandboxFlag adds --sandbox and --sandbox=LEVEL.
func sandboxFlag(cmd *cobra.Command, to *string) {
	f := cmd.Flags()
	f.Var((*sandboxValue)(to), "sandbox",
		"run the agent in a sandbox, where it writes only in its directories; with =offline also without a network (Linux, bubblewrap)")
	f.Lookup("sandbox").NoOptDefVal = domain.SandboxWorkspace
	_ = cmd.RegisterFlagCompletionFunc("sandbox", cobra.FixedCompletions(domain.SandboxLevels(), cobra.ShellCompDirectiveNoFileComp))
}

// sandboxValue is a flag for a level of a sandbox.
type sandboxValue string

func (v *sandboxValue) String() string { return string(*v) }

func (v *sandboxValue) Type() string { return "level" }

func (v *sandboxValue) Set(text string) error {
	if !slices.Contains(domain.SandboxLevels(), text) {
		return errors.New("it must be " + strings.Join(domain.SandboxLevels(), " or "))
	}
	*v = sandboxValue(text)
	return nil
}

// recommendSandbox tells a person at a terminal of the sandbox, if an agent works without questions and
// without one.
func (s *settings) recommendSandbox(note func(string), unasked bool, mode, level string) {
	if s.JSON || s.Host != "" || !unasked && mode != catalog.ModeBypass || level != "" || runtime.GOOS != "linux" || !term.IsTerminal(os.Stderr) {
		return
	}
	if _, err := exec.LookPath("bwrap"); err == nil {
		note("the agent may do everything that you may, without a question; --sandbox keeps its writes in the project")
	}
}

// checkSandbox checks whether a sandbox works here.
func checkSandbox() finding {
	f := finding{Check: "sandbox", State: findingOK, Found: "works: `duet-rpc prompt --sandbox`"}
	if _, err := new(sandbox.Finder).Find(context.Background(), domain.SandboxOffline); err != nil {
		f.State, f.Found, f.Todo = findingNote, err.Error(), ""
	}
	return f
}
