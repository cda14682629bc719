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

// This file shows long texts by pages.

// A Paging is a text that is being shown.
type Paging struct {
	done <-chan struct{}
	stop context.CancelFunc
}

// Done is closed when the pager has ended.
func (p Paging) Done() <-chan struct{} { return p.done }

// Stop asks the pager to end.
func (p Paging) Stop() { p.stop() }

// StartPager shows a text, in which every character can be seen, with the pager that
// $PAGER names, or with less; where there is neither, or out is no terminal or
// one that cannot move its cursor, it prints it.
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
		if err := cmd.Run(); cmd.ProcessState == nil { // it did not even start
			_, _ = io.WriteString(out, text)
			fmt.Fprintf(out, "— the pager could not be started: %s\n", Line(err.Error()))
		}
	}()
	return Paging{done, stop}
}

// Page is Start for a command that has nothing else to do, and waits for the
// end. Interrupts are for the pager from then on.
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

// command is what shows a text by pages, or nil.
func command(ctx context.Context) *exec.Cmd {
	if os.Getenv("TERM") == "dumb" { // of an editor: less warns, waits and takes what is typed next for its commands
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
		cmd.Env = append(cmd.Env, "LESS=FRX") // ends at once where all fits, and leaves it there; with colours
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it puts the terminal in order
	cmd.WaitDelay = time.Second
	return cmd
}
