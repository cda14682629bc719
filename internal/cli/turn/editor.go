package turn

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// This file has the user's editor change a text.

// editorName is the editor that $VISUAL or $EDITOR names; "" if neither does. On a
// terminal that cannot move its cursor $EDITOR alone counts.
func editorName() string {
	editor := strings.TrimSpace(os.Getenv("EDITOR"))
	if os.Getenv("TERM") == "dumb" {
		return editor
	}
	return cmp.Or(strings.TrimSpace(os.Getenv("VISUAL")), editor)
}

// An editing is a text that is being changed.
type editing struct {
	file string
	done <-chan struct{}
	stop context.CancelFunc
	err  *error
}

// startEditor begins to change a text in a file by that name, which nobody else can read,
// with the editor that [editorName] names.
func startEditor(terminal *os.File, name, text string) (editing, error) {
	dir, err := os.MkdirTemp("", "duet-rpc-edit-")
	if err != nil {
		return editing{}, err
	}
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		_ = os.RemoveAll(dir)
		return editing{}, err
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "sh", "-c", editorName()+` "$1"`, "editor", file) // it may have arguments
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it puts the terminal in order
	cmd.WaitDelay = time.Second
	done := make(chan struct{})
	e := editing{file, done, stop, new(error)}
	go func() {
		defer close(done)
		defer stop()
		if err := cmd.Run(); err != nil {
			*e.err = fmt.Errorf("%s: %w", editorName(), err)
		}
	}()
	return e, nil
}

// Done is closed when the editor has ended.
func (e editing) Done() <-chan struct{} { return e.done }

// Stop asks the editor to end.
func (e editing) Stop() { e.stop() }

// Text is what the editor has left, once it has ended, and removes the file. It is
// an error if the editor failed.
func (e editing) Text() (string, error) {
	<-e.done
	defer os.RemoveAll(filepath.Dir(e.file))
	if *e.err != nil {
		return "", *e.err
	}
	text, err := os.ReadFile(e.file)
	return string(text), err
}
