package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

const daemonStatusHelp = `Say whether a hub runs here, and what it does. With --json, also where the files of
the project are, as duet-rpc paths prints them.

Exit status: 0 if a hub runs here, 1 if not.`

func newStatus(o Options) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Say whether a hub runs here, and what it does",
		Long:  daemonStatusHelp,
		Args:  o.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := o.Settings.Project()
			if err != nil {
				return err
			}
			status, err := Status(cmd.Context(), o.Settings.ForAnyBuild(), p)
			if err != nil {
				return err
			}
			if o.JSON() {
				return printJSON(cmd.OutOrStdout(), o, status)
			}
			return printStatus(cmd.OutOrStdout(), status)
		},
	}
}

// printJSON prints a status with the paths of the project, which the hub does not tell its
// clients.
func printJSON(out io.Writer, o Options, hub wire.HubStatus) error {
	paths, err := o.Settings.Paths()
	if err != nil {
		return err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(hub.Raw, &members); err != nil {
		return err
	}
	if members["paths"], err = json.Marshal(paths); err != nil {
		return err
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return err
	}
	return term.Raw(out, raw)
}

// printStatus prints a status for people.
func printStatus(out io.Writer, hub wire.HubStatus) error {
	x := hub.Subsystems
	up := (time.Duration(hub.UptimeSeconds) * time.Second).String()
	fmt.Fprintf(out, "process %d, %s, up %s, %s\n", hub.PID, hub.Version, up, hub.Health)
	_, err := fmt.Fprintf(out, "%d running (at most %d), %d queued, %s, %s\n",
		x.Supervisor.Running, x.Supervisor.MaxConcurrency, x.Supervisor.Queued,
		term.Count(x.Approvals.Pending, "question open", "questions open"), term.Count(x.IPC.Clients, "client"))
	for _, issue := range hub.Issues {
		fmt.Fprintln(out, term.Lines(out, "! "+term.Line(issue)))
	}
	for _, who := range x.IPC.Unserved {
		fmt.Fprintln(out, term.Lines(out, "— "+term.Line(who)))
	}
	return err
}

// sayHub says what was done about a hub, or prints its status as JSON.
func sayHub(out io.Writer, o Options, hub wire.HubStatus, what string) error {
	if o.JSON() {
		return term.Raw(out, hub.Raw)
	}
	_, err := fmt.Fprintf(out, "%s (process %d)\n", what, hub.PID)
	return err
}
