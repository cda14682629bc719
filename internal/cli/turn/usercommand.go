package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// Commands of the user in a session: a line that begins with "!".

// keptHalf is how many bytes of the beginning of a command's output, and of its end, go along with the next
// prompt.
const keptHalf = 8 << 10

// outputExcerpt keeps the beginning and the end of what is written to it.
type outputExcerpt struct {
	head, tail []byte
	missing    int // bytes between them
}

func (e *outputExcerpt) Write(p []byte) (int, error) {
	n := min(keptHalf-len(e.head), len(p))
	e.head = append(e.head, p[:n]...)
	e.tail = append(e.tail, p[n:]...)
	if over := len(e.tail) - keptHalf; over > 0 {
		e.tail = append(e.tail[:0], e.tail[over:]...)
		e.missing += over
	}
	return len(p), nil
}

func (e *outputExcerpt) endsLine() bool {
	last := e.head
	if len(e.tail) > 0 {
		last = e.tail
	}
	return len(last) == 0 || last[len(last)-1] == '\n'
}

func (e *outputExcerpt) text() string {
	between := ""
	if e.missing > 0 {
		between = "\n[… " + bytesOf(e.missing) + " left out …]\n"
	}
	text := visible.WithoutColors(string(e.head) + between + string(e.tail))
	return strings.TrimRight(strings.ToValidUTF8(text, "\uFFFD"), "\n")
}

// asPrompt returns a prompt that no key of the user has begun, such as an earlier one. Sent from the box, it is
// not taken for a command of the user.
func asPrompt(text string) string {
	if strings.HasPrefix(text, "!") {
		return " " + text
	}
	return text
}

// runCommand runs a command of the user on the terminal, where the session works. Its output goes along with
// the next prompt. An empty command drops the outputs that wait for that.
func (t *Talk) runCommand(a *asker, command string) {
	if command == "" {
		t.ran = nil
		t.view.Note("no output goes along with your next prompt")
		return
	}
	a.release()
	t.view.aside("$ "+command, bold)
	var kept outputExcerpt
	err := t.runOnTerminal(a, command, io.MultiWriter(t.view.out, &kept))
	if !kept.endsLine() {
		fmt.Fprintln(t.view.out)
	}
	how := "exit status 0"
	if err != nil {
		how = err.Error()
	}
	t.ran = append(t.ran, fenced("$ "+command+"\n"+kept.text()+"\n["+how+"]"))
	goes := "the output goes along with your next prompt"
	if kept.missing > 0 {
		goes = "the first and last 8 KB of the output go along with your next prompt"
	}
	t.view.Note(how + "; " + goes + ", ! alone drops it")
}

// runOnTerminal runs a command to its end. The first C-c goes to the command alone, a second one also ends
// the shell that runs it.
func (t *Talk) runOnTerminal(a *asker, command string, out io.Writer) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	dir := cmp.Or(t.Session.WorkingDir, t.Dir)
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	if cmd.Dir = dir; t.Shell != nil {
		cmd = t.Shell(ctx, dir, command)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.terminal, out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Second // a process in the background may keep the output open
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = cmd.Run()
	}()
	interrupts := 0
	a.lend(done, stop, func() {
		if interrupts++; interrupts > 1 {
			stop()
		}
	})
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

// fenced returns a text between fences that it does not contain.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + text + "\n" + fence
}

// withOutputs returns a prompt with the outputs of the user's commands.
func (t *Talk) withOutputs(prompt string) string {
	if len(t.ran) == 0 {
		return prompt
	}
	return prompt + "\n\nI ran here:\n\n" + strings.Join(t.ran, "\n\n")
}
