package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Limits of a [Spec].
const (
	MostGates         = 20
	MostIterations    = 100
	DefaultIterations = 5
	longestCommand    = 4096 // bytes
)

// Spec requests gates. The zero value requests none.
type Spec struct {
	// Gates are configured names or shell lines.
	Gates []string
	// MaxIterations limits the number of turns, including the first; 0 means DefaultIterations.
	MaxIterations int
}

// Check validates a Spec and the caller's permission. The error is a *domain.Error.
func (s Spec) Check(ctx context.Context) error {
	switch {
	case len(s.Gates) > 0 && clientenv.IsRestricted(ctx):
		return untrusted()
	case len(s.Gates) == 0 && s.MaxIterations != 0:
		return domain.Invalid("max_iterations", "nothing, where there are no gates", "a number")
	case s.MaxIterations < 0 || s.MaxIterations > MostIterations:
		return domain.Invalid("max_iterations", fmt.Sprintf("a number from 1 to %d", MostIterations),
			fmt.Sprint(s.MaxIterations))
	case len(s.Gates) > MostGates:
		return domain.Invalid("gates", fmt.Sprintf("at most %d commands", MostGates), fmt.Sprint(len(s.Gates)))
	}
	for i, g := range s.Gates {
		switch {
		case strings.TrimSpace(g) == "":
			return domain.Invalid("gates", "commands that are not empty", "an empty one")
		case len(g) > longestCommand || strings.ContainsRune(g, 0):
			return domain.Invalid("gates", fmt.Sprintf("commands of at most %d bytes, without a NUL", longestCommand),
				"another one")
		case slices.Contains(s.Gates[:i], g):
			return domain.Invalid("gates", "commands that differ", "the same one twice")
		}
	}
	return nil
}

// untrusted returns the error for an editor that does not trust the workspace.
func untrusted() error {
	return domain.Errorf(domain.KindNotTrusted,
		"gates run programs of the project, and this editor does not trust the workspace (workspaceTrusted is false): trust it in the editor")
}
