package term

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The pager for long texts.

// Paging is a text in a running pager.
type Paging struct {
	done <-chan struct{}
	stop context.CancelFunc
}

// Done returns a channel that is closed when the pager has ended.
func (p Paging) Done() <-chan struct{} { return p.done }

// Stop asks the pager to end.
func (p Paging) Stop() { p.stop() }

// StartPager shows a text in the pager that $PAGER names, or in less. If neither exists, or
// out is not a terminal with cursor control, it prints the text. All characters must be
// visible already.
func StartPager(out io.Writer, text string) Paging {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	cmd := command(ctx)
	if cmd == nil || !IsTerminal(out) {
		_, _ = io.WriteString(out, text)
		stop()
		close(done)
		return Paging{done, stop}
	}
	terminal := fileOf(out)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(Marks.Signs(text)), terminal, terminal
	go func() {
		defer close(done)
		defer stop()
		if err := cmd.Run(); cmd.ProcessState == nil { // the pager did not start
			_, _ = io.WriteString(out, text)
			fmt.Fprintf(out, "— the pager could not be started: %s\n", Line(err.Error()))
		}
	}()
	return Paging{done, stop}
}

// Page is StartPager for a command with nothing else to do: it waits for the end. Interrupts
// go to the pager.
func Page(out io.Writer, text string) error {
	if !IsTerminal(out) {
		_, err := io.WriteString(out, text)
		return err
	}
	signal.Ignore(os.Interrupt)
	<-StartPager(out, text).done
	return nil
}

// ShowsColors reports whether the pager passes colours on to the terminal.
func ShowsColors() bool {
	named := strings.Fields(cmp.Or(os.Getenv("PAGER"), "less"))
	options := os.Getenv("LESS")
	switch {
	case len(named) == 0 || filepath.Base(named[0]) == "cat":
		return true
	case filepath.Base(named[0]) != "less":
		return false
	}
	for _, argument := range append(strings.Fields(options), named[1:]...) {
		if argument == "--RAW-CONTROL-CHARS" || !strings.HasPrefix(argument, "--") && strings.ContainsAny(argument, "Rr") {
			return true
		}
	}
	return options == ""
}

// command returns the pager's command, or nil.
func command(ctx context.Context) *exec.Cmd {
	if os.Getenv("TERM") == "dumb" { // an editor's terminal: less would warn, wait and read the next input as its commands
		return nil
	}
	var cmd *exec.Cmd
	named := cmp.Or(strings.TrimSpace(os.Getenv("PAGER")), "less")
	if shell, err := exec.LookPath("sh"); err == nil && named != "less" {
		cmd = exec.CommandContext(ctx, shell, "-c", named)
	} else if program, err := exec.LookPath(named); err == nil {
		cmd = exec.CommandContext(ctx, program)
	} else {
		return nil
	}
	cmd.Env = os.Environ()
	if os.Getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=FRX") // quit if the text fits on one screen, and keep it there; with colours
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // the pager resets the terminal
	cmd.WaitDelay = time.Second
	return cmd
}
