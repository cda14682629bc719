// Package prompttext makes the prompt of what was typed and what comes in.
package prompttext

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/cli/tty"
)

// most is how long standard input may be, in bytes.
const most = 8 << 20

// Read is the prompt: the arguments, or what comes in if there are none, or "-" alone.
func Read(in io.Reader, args []string) (string, error) {
	text := strings.Join(args, " ")
	if text == "" || text == "-" {
		if tty.Is(os.Stdin) {
			return "", errors.New(`say what the agent is to do, such as: duet-rpc prompt "Say hello"`)
		}
		var err error
		if text, err = readAll(in); err != nil {
			return "", err
		}
	}
	if strings.TrimSpace(text) == "" {
		return "", errors.New("the prompt is empty")
	}
	return text, nil
}

// patience is how long standard input may take before it is said that it is waited
// for.
const patience = 2 * time.Second

// WithInput is the prompt: the arguments, and what comes in through a pipe or from a
// file as their context. note says something to the user.
func WithInput(in io.Reader, args []string, note func(string)) (string, error) {
	text := strings.Join(args, " ")
	if strings.TrimSpace(text) == "" || text == "-" || !isPiped(in) {
		return Read(in, args)
	}
	waiting := time.AfterFunc(patience, func() {
		note("reading standard input, which goes along with the prompt; </dev/null goes without it")
	})
	context, err := readAll(in)
	waiting.Stop()
	if err != nil {
		return "", err
	}
	return Join(text, context), nil
}

// Join is an instruction with a text that it is about, whose beginning and end are
// marked by a word that is not in it.
func Join(instruction, context string) string {
	if strings.TrimSpace(context) == "" {
		return instruction
	}
	mark := "stdin"
	for n := 2; strings.Contains(context, "<"+mark+">") || strings.Contains(context, "</"+mark+">"); n++ {
		mark = fmt.Sprintf("stdin-%d", n)
	}
	return fmt.Sprintf("%s\n\n<%s>\n%s\n</%s>", instruction, mark, strings.TrimRight(context, "\n"), mark)
}

// isPiped reports whether somebody has put a pipe or a file there: not a terminal,
// nor /dev/null, nor the socket of who started us.
func isPiped(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return true
	}
	info, err := f.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&os.ModeNamedPipe != 0)
}

func readAll(in io.Reader) (string, error) {
	all, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return "", fmt.Errorf("reading the prompt from standard input: %w", err)
	}
	if len(all) > most {
		return "", fmt.Errorf("the prompt on standard input is longer than %d bytes", most)
	}
	return string(all), nil
}
