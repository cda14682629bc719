package output

import (
	"io"
	"os"

	"github.com/duet-rpc/duet-rpc/internal/cli/tty"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// Terminal is where commands print: the file, or where that is a terminal that shows
// ASCII alone one that writes its signs so.
func Terminal(f *os.File) io.Writer {
	if Marks != visible.ASCII || !tty.Is(f) {
		return f
	}
	return asciiTerminal{f}
}

// An asciiTerminal writes signs in ASCII. Each write has whole characters.
type asciiTerminal struct{ file *os.File }

func (t asciiTerminal) File() *os.File { return t.file }

func (t asciiTerminal) Write(p []byte) (int, error) {
	if _, err := io.WriteString(t.file, visible.ASCII.Signs(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
