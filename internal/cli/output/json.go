package output

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/cli/tty"
)

// JSON prints a value, indented.
func JSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Raw prints JSON as it is, on a line, but for what would steer a terminal.
func Raw(out io.Writer, raw json.RawMessage) error {
	if f := tty.File(out); f != nil {
		out = f // it is printed as it is
	}
	_, err := fmt.Fprintf(out, "%s\n", Inert(raw))
	return err
}

// Inert escapes the control characters that JSON allows as they are and that
// terminals act on (DEL and C1): they stand in strings alone, so the value stays
// the same.
func Inert(raw json.RawMessage) string {
	var b strings.Builder
	for _, r := range string(raw) {
		if r >= 0x7f && r < 0xa0 {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
