// Package sessions has the commands of the shell that find, show and put away
// sessions.
package sessions

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// Options are what the commands need of the shell.
type Options struct {
	JSON      func() bool // print JSON
	NoColor   func() bool
	Exactly   func(names ...string) cobra.PositionalArgs
	AtLeast   func(names ...string) cobra.PositionalArgs
	Completes cobra.CompletionFunc // an id
	// Hub runs do with a connection to the project's hub.
	Hub func(cmd *cobra.Command, do func(context.Context, *client.Client) error) error
	// Find finds a session by any of its ids, where no hub runs, too.
	Find func(cmd *cobra.Command, id string) (wire.Session, error)
	Help string // what the commands over a hub have in common
	// AskYes asks on the terminal. An error says no, and what to run again.
	AskYes func(cmd *cobra.Command, question, no, again string) error
	// Progress says something beside the result.
	Progress func(cmd *cobra.Command, what string)
}

// New makes the commands below session.
func New(o Options) []*cobra.Command {
	return []*cobra.Command{newShow(o), newPick(o), newQueue(o), newArchive(o), newUnarchive(o), newRename(o), newDelete(o)}
}

// change calls a method about the session that the first argument names, and says
// what has become of it.
func (o Options) change(cmd *cobra.Command, id, method string, params map[string]any, now string) error {
	s, err := o.Find(cmd, id)
	if err != nil {
		return err
	}
	params["session_id"] = s.ID // an id such as last may name another one in a moment
	return o.Hub(cmd, func(ctx context.Context, c *client.Client) error {
		_, raw, err := wire.Call[json.RawMessage](ctx, c, method, params)
		if err != nil {
			return err
		}
		if o.JSON() {
			return term.Raw(cmd.OutOrStdout(), raw)
		}
		o.Progress(cmd, s.TaskID+" "+now)
		return nil
	})
}

func newArchive(o Options) *cobra.Command {
	return &cobra.Command{
		Use: "archive ID", Args: o.Exactly("ID"), ValidArgsFunction: o.Completes,
		Short: "Put a session's conversation away",
		Long:  "Put a session's conversation away: it is not listed any more but by session list\n--archived. To continue it takes it back.\n" + o.Help,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.change(cmd, args[0], "archiveSession", map[string]any{"archived": true}, "is in the archive; session unarchive takes it back")
		},
	}
}

func newUnarchive(o Options) *cobra.Command {
	return &cobra.Command{
		Use: "unarchive ID", Args: o.Exactly("ID"), ValidArgsFunction: o.Completes,
		Short: "Take a session's conversation back from the archive",
		Long:  "Take a session's conversation back from the archive.\n" + o.Help,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.change(cmd, args[0], "archiveSession", map[string]any{"archived": false}, "is listed again")
		},
	}
}

func newRename(o Options) *cobra.Command {
	return &cobra.Command{
		Use: "rename ID TITLE...", Args: o.AtLeast("ID", "TITLE"), ValidArgsFunction: o.Completes,
		Short: "Give a session's conversation a title",
		Long:  "Give a session's conversation a title.\n" + o.Help, Example: "  duet-rpc session rename last The parser",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.change(cmd, args[0], "updateSessionTitle", map[string]any{"title": joined(args[1:])}, "is called "+joined(args[1:]))
		},
	}
}
