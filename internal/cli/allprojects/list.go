package allprojects

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/sessionview"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
)

// Options are what the list needs of the shell.
type Options struct {
	Settings *hubprocess.Settings
	JSON     func() bool
	// Progress says something beside the result.
	Progress func(cmd *cobra.Command, what string)
}

// AddList lets `session list` list the sessions of all projects, with --all-projects.
// params are those of listSessions, and limit is the flag for how many.
func AddList(cmd *cobra.Command, o Options, params any, limit *int) {
	var everywhere bool
	cmd.Flags().BoolVar(&everywhere, "all-projects", false, "the sessions of all projects in which a hub has run on this machine")
	own := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !everywhere {
			return own(cmd, args)
		}
		return o.list(cmd, params, *limit)
	}
}

func (o Options) list(cmd *cobra.Command, params any, limit int) error {
	found, err := roots(o.Settings)
	if err != nil {
		return err
	}
	ctx, stop := term.UntilInterrupted(cmd.Context())
	defer stop()
	all := ask(ctx, o.Settings, found, params)
	if ctx.Err() != nil {
		return term.ErrInterrupted
	}
	newest(all, limit)
	if o.JSON() {
		raw, err := json.Marshal(listing{all})
		if err != nil {
			return err
		}
		return term.Raw(cmd.OutOrStdout(), raw)
	}
	for _, p := range all {
		if p.Error != "" {
			o.Progress(cmd, term.HomePath(p.Root)+": "+p.Error)
		}
	}
	t := term.NewTable(cmd.OutOrStdout(), "PROJECT", "TASK", "STATUS", "AGENT", "ACTIVE", "TITLE")
	t.Spare("AGENT")
	t.Empty("no session is kept of any project that is known on this machine: `duet-rpc prompt \"…\"` begins one here")
	for _, s := range rows(all) {
		t.Row(term.HomePath(s.root), s.TaskID, sessionview.Status(s.Session), s.Agent, term.Age(s.LastActivity), term.Short(s.Called()))
	}
	return t.Flush()
}
