package nativesession

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/cli/wire"
)

const adoptHelp = `Make a session of Duet's of one that an agent keeps itself, such as one that was
begun in the agent's own program: with all that was said and done in it. Then
"duet-rpc session continue" goes on with it, and the agent knows it all.

ID is as "duet-rpc session list --native" shows it, the beginning of one, or last:
the one in which something happened last.
`

// NewAdopt makes the command that adopts a session.
func NewAdopt(o Options) *cobra.Command {
	var w which
	var title string
	cmd := &cobra.Command{
		Use: "adopt ID|last", Short: "Take over a session that was begun in an agent's own program", Args: exactlyID, Annotations: o.Starts,
		Long:    adoptHelp + o.Help,
		Example: "  duet-rpc session adopt last\n  duet-rpc session adopt 5c6a836b --agent claude",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.Hub(cmd, func(ctx context.Context, c *client.Client) error {
				id, err := w.idOf(ctx, c, o, args[0])
				if err != nil {
					return err
				}
				params := map[string]any{"agent": w.agent, "native_session_id": id, "title": title}
				if w.dir != "" {
					if params["working_dir"], err = o.FullPath(w.dir); err != nil {
						return err
					}
				}
				r, raw, err := wire.Call[struct {
					Task    string `json:"task_id"`
					Session string `json:"session_id"`
					Adopted bool   `json:"adopted"`
					Note    string `json:"note"`
				}](ctx, c, "agent.adopt", params)
				if err != nil {
					return err
				}
				if done, err := o.raw(cmd, raw); done {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), output.Line(r.Session))
				if r.Note != "" {
					o.Progress(cmd, "%s", r.Note)
				}
				if r.Adopted {
					o.Progress(cmd, "%s has it: `duet-rpc session continue %s TEXT` goes on", r.Task, r.Task)
				}
				return nil
			})
		},
	}
	w.addFlags(cmd, o)
	cmd.Flags().Lookup("dir").Usage = "the directory in which it is to go on (default: as the agent says)"
	cmd.Flags().StringVar(&title, "title", "", "a title for it (default: the agent's)")
	cmd.ValidArgsFunction = w.words(o, "last\tthe one in which something happened last")
	return cmd
}

// idOf is the id that a word names. What the agent does not list is taken to be an id,
// where it cannot list any.
func (w which) idOf(ctx context.Context, c *client.Client, o Options, word string) (string, error) {
	look := w
	look.dir = "" // that is where it is to go on
	if word != "last" {
		look.everywhere = true
	}
	s, err := look.find(ctx, c, o, word)
	if word != "last" && client.KindOf(err) == "not_offered" {
		return word, nil
	}
	return s.ID, err
}

const deleteHelp = `Have an agent delete a session that it keeps itself, for good. A conversation of
Duet's that has it stays, and the agent is told it anew when that goes on.
`

// NewDelete makes the command that has an agent delete a session.
func NewDelete(o Options) *cobra.Command {
	var w which
	var native, yes bool
	cmd := &cobra.Command{
		Use: "delete --native ID", Short: "Have an agent delete a session that it keeps itself", Args: exactlyID,
		Long:    deleteHelp + o.Help,
		Example: "  duet-rpc session delete --native 5c6a836b --agent claude",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !native {
				return fmt.Errorf("only sessions that an agent keeps itself are deleted: add --native; Duet's own are put away with archiveSession")
			}
			return o.Hub(cmd, func(ctx context.Context, c *client.Client) error {
				if args[0] == "last" {
					return fmt.Errorf("say which: the id of the session that is to be deleted, or the beginning of one")
				}
				look := w
				look.everywhere = w.dir == ""
				s, err := look.find(ctx, c, o, args[0])
				if err != nil {
					return err
				}
				if !yes {
					question := fmt.Sprintf("Delete %q (%s, in %s) for good?", output.Short(s.Title), s.ID, output.Line(s.Dir))
					if err := o.AskYes(cmd, question, "not deleted", "duet-rpc session delete --native "+s.ID); err != nil {
						return err
					}
				}
				_, raw, err := wire.Call[struct{}](ctx, c, "agent.deleteSession", map[string]any{"agent": w.agent, "native_session_id": s.ID})
				if err != nil {
					return err
				}
				if done, err := o.raw(cmd, raw); done {
					return err
				}
				o.Progress(cmd, "%s is deleted", s.ID)
				return nil
			})
		},
	}
	w.addFlags(cmd, o)
	cmd.Flags().BoolVar(&native, "native", false, "it is a session of the agent's own")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.ValidArgsFunction = w.words(o)
	return cmd
}
