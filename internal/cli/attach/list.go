package attach

import (
	"fmt"
	"io"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// PrintList prints terminals as a table.
func PrintList(out io.Writer, terminals []wire.Terminal) error {
	t := term.NewTable(out, "TERMINAL", "SIZE", "AGE", "COMMAND", "")
	t.Below("")
	for _, one := range terminals {
		t.Row(one.ID, size(one), term.Age(one.StartedAt), command(one), users(one))
	}
	return t.Flush()
}

// Describe tells of a terminal on a line.
func Describe(t wire.Terminal) string {
	return strings.Trim(command(t)+" · "+users(t), " ·")
}

// size is columns and rows, or - for a terminal that has no size.
func size(t wire.Terminal) string {
	if t.Cols == 0 {
		return "-"
	}
	return fmt.Sprintf("%d×%d", t.Cols, t.Rows)
}

// users says whose terminal it is, and who is there.
func users(t wire.Terminal) string {
	var list []string
	if t.ReadOnly {
		list = append(list, strings.TrimSpace("an agent's "+t.TaskID))
	}
	if t.Tmux != "" {
		list = append(list, "tmux "+t.Tmux)
	}
	switch {
	case t.Taken:
		list = append(list, "taken")
	case t.Attached > 0:
		list = append(list, fmt.Sprint(t.Attached, " attached"))
	}
	return strings.Join(list, ", ")
}

func command(t wire.Terminal) string {
	return term.Short(strings.Join(append([]string{t.Program}, t.Args...), " "))
}
