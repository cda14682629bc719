package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"
)

// A paging is a text that is being shown.
type paging struct {
	done <-chan struct{}
	stop context.CancelFunc
}

// page shows a text, in which every character can be seen, with the pager that
// $PAGER names, or with less; where there is neither, or out is no terminal or
// one that cannot move its cursor, it prints it.
func page(out io.Writer, text string) paging {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	cmd := pager(ctx)
	if cmd == nil || !isTerminal(out) {
		_, _ = io.WriteString(out, text)
		stop()
		close(done)
		return paging{done, stop}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), out, out
	go func() {
		defer close(done)
		defer stop()
		if err := cmd.Run(); cmd.ProcessState == nil { // it did not even start
			_, _ = io.WriteString(out, text)
			fmt.Fprintf(out, "— the pager does not run: %s\n", oneLine(err.Error()))
		}
	}()
	return paging{done, stop}
}

// pageText is page for a command that has nothing else to do. Signals are for
// the pager.
func pageText(out io.Writer, text string) error {
	if !isTerminal(out) {
		_, err := io.WriteString(out, text)
		return err
	}
	signal.Ignore(os.Interrupt)
	<-page(out, text).done
	return nil
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// pager is the command that shows a text by pages, or nil.
func pager(ctx context.Context) *exec.Cmd {
	if os.Getenv("TERM") == "dumb" { // of an editor: less warns, waits and takes what is typed next for its commands
		return nil
	}
	var cmd *exec.Cmd
	named := strings.TrimSpace(os.Getenv("PAGER"))
	if named == "" {
		named = "less"
	}
	if shell, err := exec.LookPath("sh"); err == nil && named != "less" {
		cmd = exec.CommandContext(ctx, shell, "-c", named)
	} else if program, err := exec.LookPath(named); err == nil {
		cmd = exec.CommandContext(ctx, program)
	} else {
		return nil
	}
	cmd.Env = os.Environ()
	if os.Getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=FX") // ends at once where all fits, and leaves it there
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it puts the terminal in order
	cmd.WaitDelay = time.Second
	return cmd
}
