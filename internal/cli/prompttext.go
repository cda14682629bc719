package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
)

// This file makes the prompt of what was typed and what comes in.

// most is how long standard input may be, in bytes.
const most = 8 << 20

// readPromptText is the prompt: the arguments, or what comes in if there are none, or "-" alone.
func readPromptText(in io.Reader, args []string) (string, error) {
	text := strings.Join(args, " ")
	if text == "" || text == "-" {
		if term.IsTerminal(os.Stdin) {
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

// A patience is how long a pipe may be silent beside arguments: until it is said that
// it is waited for, and until the prompt goes without it. Editors and CI hand down
// pipes to which nobody ever writes.
type patience struct{ silently, atMost time.Duration }

// usual gives a program time to begin to print; one that takes longer is waited for
// with a "-" behind the arguments.
var usual = patience{2 * time.Second, 5 * time.Second}

// promptWithInput is the prompt: the arguments, and what comes in through a pipe or from a
// file as their context. A pipe through which nothing comes is not waited for, unless
// the last argument is "-". note says something to the user.
func promptWithInput(in io.Reader, args []string, note func(string)) (string, error) {
	return addInput(in, args, note, usual)
}

func addInput(in io.Reader, args []string, note func(string), p patience) (string, error) {
	wanted := len(args) > 1 && args[len(args)-1] == "-"
	if wanted {
		args = args[:len(args)-1]
	}
	text := strings.Join(args, " ")
	switch {
	case strings.TrimSpace(text) == "" || text == "-":
		defer time.AfterFunc(p.silently, func() { note("reading the prompt from standard input") }).Stop()
		return readPromptText(in, args)
	case wanted && term.IsTerminal(in):
		return "", errors.New(`"-" is for what comes through a pipe or from a file, and standard input is a terminal`)
	case !wanted && !isPiped(in):
		return text, nil
	case !wanted && !awaitInput(in, note, p):
		note(fmt.Sprintf("nothing has come through standard input in %d s, so the prompt goes without it; a - behind the prompt waits for it", int(p.atMost.Seconds())))
		return text, nil
	}
	waiting := time.AfterFunc(p.silently, func() {
		note("reading standard input to its end, which goes along with the prompt")
	})
	context, err := readAll(in)
	waiting.Stop()
	if err != nil {
		return "", err
	}
	return joinPrompt(text, context), nil
}

// awaitInput waits until something comes in, or the end, and reports whether it did.
func awaitInput(in io.Reader, note func(string), p patience) bool {
	f, ok := in.(*os.File)
	if !ok || comes(f, p.silently) {
		return true
	}
	note("waiting for standard input, which goes along with the prompt; </dev/null goes without it")
	return comes(f, p.atMost-p.silently)
}

// joinPrompt is an instruction with a text that it is about, whose beginning and end are
// marked by a word that is not in it.
func joinPrompt(instruction, context string) string {
	if strings.TrimSpace(context) == "" {
		return instruction
	}
	mark, lower := "stdin", strings.ToLower(context)
	for n := 2; hasTag(lower, mark); n++ {
		mark = fmt.Sprintf("stdin-%d", n)
	}
	return fmt.Sprintf("%s\n\n<%s>\n%s\n</%s>", instruction, mark, strings.TrimRight(context, "\n"), mark)
}

// hasTag reports whether a text has a tag of a name, which an agent may take for the
// beginning or the end: also <name > and <name/>.
func hasTag(text, name string) bool {
	for _, begin := range []string{"<" + name, "</" + name} {
		for rest := text; ; {
			_, after, found := strings.Cut(rest, begin)
			if !found {
				break
			}
			if after == "" || !strings.ContainsAny(after[:1], "-0123456789abcdefghijklmnopqrstuvwxyz_") {
				return true
			}
			rest = after
		}
	}
	return false
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
