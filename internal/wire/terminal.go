package wire

import (
	"context"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/client"
)

// A Terminal is a terminal that runs in the hub.
type Terminal struct {
	ID        string   `json:"terminal_id"`
	Program   string   `json:"program"`
	Args      []string `json:"args"`
	CWD       string   `json:"cwd"`
	Cols      int      `json:"cols"`
	Rows      int      `json:"rows"`
	Tmux      string   `json:"tmux_session"`
	TaskID    string   `json:"task_id"`
	ReadOnly  bool     `json:"read_only"`
	Attached  int      `json:"attached"`
	Taken     bool     `json:"taken"`
	StartedAt string   `json:"started_at"`
}

// Terminals are those of the hub.
func Terminals(ctx context.Context, c *client.Client) ([]Terminal, json.RawMessage, error) {
	r, raw, err := Call[struct{ Terminals []Terminal }](ctx, c, "terminal.list", nil)
	return r.Terminals, raw, err
}
