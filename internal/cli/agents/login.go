package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/signin"
)

// login signs in with the method of an id, or lists those that there are. What
// comes of it goes to out, what is done meanwhile to side.
func login(ctx context.Context, out, side io.Writer, launch agentlink.Launch, id string) error {
	quiet := slog.New(slog.DiscardHandler)
	report, err := signin.Check(ctx, launch, quiet)
	if err != nil {
		return err
	}
	method, err := report.Find(id)
	if err != nil {
		if id == "" && len(report.Methods) > 1 {
			printMethods(out, launch.Name, report.Methods)
		}
		return err
	}
	if len(method.Missing) > 0 {
		return &signin.MissingError{Agent: launch.Name, Variables: method.Missing}
	}
	if method.Type == signin.TypeTerminal {
		if err := runLogin(ctx, out, side, launch, method); err != nil {
			return err
		}
	} else {
		how := "it may open your browser; C-c gives up"
		if method.Type == signin.TypeVariable {
			how = "it may keep what it is given in files of its own"
		}
		fmt.Fprintf(side, "%s: %s; %s\n", term.Line(launch.Name), term.Line(method.Name), how)
		if err := signin.Authenticate(ctx, launch, method.ID, quiet); err != nil {
			return err
		}
	}
	if report, err = signin.Check(ctx, launch, quiet); err != nil {
		return err
	}
	if report.SignedIn == signin.OpensSessions { // somebody has just signed in
		notes().Authenticated(launch.Name, launch.Command)
	} else {
		notes().Checked(launch.Name, launch.Command, report)
	}
	if report.SignedIn == signin.SignedOut {
		return fmt.Errorf("%s still says that nobody is signed in: %s", launch.Name, report.Account)
	}
	_, err = fmt.Fprintln(out, strings.TrimSpace(term.Line(fmt.Sprintf("You are signed in to %s. %s", launch.Name, report.Account))))
	return err
}

// runLogin runs the program of a way to sign in, in this terminal.
func runLogin(ctx context.Context, out, side io.Writer, launch agentlink.Launch, method signin.Method) error {
	if !term.IsTerminal(os.Stdin) {
		return &signin.TerminalError{Agent: launch.Name, Method: method.ID}
	}
	path, argv, env, err := signin.Terminal(launch, method)
	if err != nil {
		return err
	}
	fmt.Fprintf(side, "Running %s\n", term.Line(strings.Join(argv, " ")))
	program := exec.CommandContext(ctx, path, argv[1:]...)
	program.Env, program.Stdin, program.Stdout, program.Stderr = env, os.Stdin, out, side
	// The first C-c is the program's, which shares the terminal: it is not killed for it.
	program.Cancel = func() error { return nil }
	err = program.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("you are not signed in to %s: its program ended with %s", launch.Name, exit.ProcessState)
	}
	return err
}
