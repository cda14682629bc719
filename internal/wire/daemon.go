package wire

import (
	"context"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/client"
)

// A HubStatus is how a hub is.
type HubStatus struct {
	PID           int      `json:"pid"`
	UptimeSeconds int      `json:"uptime_seconds"`
	Health        string   `json:"health"`
	Issues        []string `json:"issues"`
	Version       string   `json:"version"`
	Hub           string   `json:"hub"` // what config calls its kind
	Subsystems    struct {
		IPC struct {
			Sockets []string
			Clients int

			Unserved []string // who looks for a daemon and cannot reach this one, and why
		}
		Supervisor struct{ Running, Queued, MaxConcurrency int }
		Approvals  struct{ Pending int }
		Store      struct {
			Path    string
			LastSeq int64 `json:"last_seq"`
		}
	} `json:"subsystems"`
	Raw json.RawMessage `json:"-"` // all of it, as it came
}

// LastSeq is the number of the last event in the log.
func LastSeq(ctx context.Context, c *client.Client) (int64, error) {
	status, err := Status(ctx, c)
	return status.Subsystems.Store.LastSeq, err
}

// Status asks a hub how it is.
func Status(ctx context.Context, c *client.Client) (HubStatus, error) {
	status, raw, err := Call[HubStatus](ctx, c, "daemon.status", nil)
	status.Raw = raw
	return status, err
}
