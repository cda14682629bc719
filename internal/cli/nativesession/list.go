package nativesession

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// AddList lets `session list` list the sessions of an agent's own, with --native. agent
// and limit are flags that it has.
func AddList(cmd *cobra.Command, o Options, agent *string, limit *int) {
	var w which
	var native bool
	cmd.Flags().BoolVar(&native, "native", false, "sessions that the agent keeps itself, however they were begun; adopt one with\n`duet-rpc session adopt`")
	w.addPlaces(cmd)
	own := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !native {
			for _, name := range []string{"dir", "everywhere"} {
				if cmd.Flags().Changed(name) {
					return fmt.Errorf("--%s is about the agent's own sessions: add --native", name)
				}
			}
			return own(cmd, args)
		}
		for _, name := range []string{"status", "archived"} {
			if cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s is about Duet's sessions, not the agent's own: leave it or --native out", name)
			}
		}
		w.agent = *agent
		return o.list(cmd, w, *limit)
	}
}

// list prints a page of an agent's sessions, a line each.
func (o Options) list(cmd *cobra.Command, w which, limit int) error {
	return o.Hub(cmd, func(ctx context.Context, c *client.Client) error {
		p, err := w.params(o, limit)
		if err != nil {
			return err
		}
		got, raw, err := wire.Call[page](ctx, c, "agent.sessions", p)
		if err != nil {
			return err
		}
		if done, err := o.raw(cmd, raw); done {
			return err
		}
		if len(got.Sessions) == 0 {
			o.Progress(cmd, "%s has no session %s", got.Agent, w.place("; --everywhere lists those in all directories"))
			return nil
		}
		t := term.NewTable(cmd.OutOrStdout(), "ID", "ADOPTED", "AGE", "TITLE", "DIRECTORY")
		t.Below("DIRECTORY", "TITLE")
		for _, s := range got.Sessions {
			adopted := s.Task
			if adopted == "" {
				adopted = "-"
			}
			t.Row(s.ID, adopted, term.Age(s.UpdatedAt), term.Short(s.Title), s.Dir)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		if got.Next != "" {
			o.Progress(cmd, "there are more: --limit %d", limit*4)
		}
		return nil
	})
}
