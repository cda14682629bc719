package acp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/signin"
)

// A Login signs in to an agent in this terminal. Where it has several ways and none is
// named, it lists them on out, and its error is a [signin.UnknownMethodError].
type Login func(ctx context.Context, out *os.File, agent, method string) error

// signIn signs in to the agent that is behind sessions.
func signIn(cmd *cobra.Command, s *hubprocess.Settings, agent string, login Login) error {
	if agent == "" {
		c, err := s.Config()
		if err != nil {
			return err
		}
		agent = c.Default()
	}
	err := login(cmd.Context(), os.Stdout, agent, "")
	var several *signin.UnknownMethodError
	if !errors.As(err, &several) || several.ID != "" || len(several.Known) == 0 {
		return err
	}
	fmt.Fprintf(os.Stdout, "Which one? [%s] ", several.Known[0])
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n') // what cannot be read names none
	method := strings.TrimSpace(line)
	if line == "" {
		return err
	}
	if method == "" {
		method = several.Known[0]
	}
	return login(cmd.Context(), os.Stdout, agent, method)
}
