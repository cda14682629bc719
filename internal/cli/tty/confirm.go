package tty

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Yes asks a question on the terminal that is standard input, and reads the answer from
// in. No answer is no.
func Yes(in io.Reader, out io.Writer, question string) (bool, error) {
	DiscardTyped(os.Stdin)
	fmt.Fprintf(out, "%s [y/N] ", question)
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes", nil
}
