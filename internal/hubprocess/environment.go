package hubprocess

import (
	"encoding/json"
	"os"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
)

// environment returns the notification client.environment with the environment of this process.
// Without a readable configuration it contains the variables that every agent gets.
func (s *Settings) environment() []byte {
	var names []string
	if c, err := s.Config(); err == nil {
		names = c.VariablesFrom()
	}
	variables, _ := json.Marshal(clientenv.Collect(os.Getenv, names)) // strings: encoding cannot fail
	message := []byte(`{"jsonrpc":"2.0","method":"client.environment","params":{"environment":`)
	return append(append(message, variables...), "}}"...)
}
