package nativesession

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// adoptPatience is how long an agent may take before it is said that it is waited for.
const adoptPatience = 5 * time.Second

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
				late := time.AfterFunc(adoptPatience, func() {
					o.Progress(cmd, "the agent is asked for the session, which may take a minute")
				})
				defer late.Stop()
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
				fmt.Fprintln(cmd.OutOrStdout(), term.Line(r.Session))
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

// AddDelete lets `session delete` have an agent delete a session that it keeps itself,
// with --native. The command has the flag yes.
func AddDelete(cmd *cobra.Command, o Options) {
	var w which
	var native bool
	w.addFlags(cmd, o)
	cmd.Flags().BoolVar(&native, "native", false, "a session that the agent keeps itself; a conversation of Duet's that has it\nstays, and the agent is told it anew when that goes on")
	cmd.Example += "\n  duet-rpc session delete --native 5c6a836b --agent claude"
	own, words := cmd.RunE, cmd.ValidArgsFunction
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if native {
			return o.delete(cmd, w, args[0])
		}
		for _, name := range []string{"agent", "dir", "everywhere"} {
			if cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s is about the agent's own sessions: add --native", name)
			}
		}
		return own(cmd, args)
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if native {
			return w.words(o)(cmd, args, word)
		}
		return words(cmd, args, word)
	}
}

// delete has an agent delete the session that a word names.
func (o Options) delete(cmd *cobra.Command, w which, word string) error {
	return o.Hub(cmd, func(ctx context.Context, c *client.Client) error {
		if word == "last" {
			return fmt.Errorf("say which: the id of the session that is to be deleted, or the beginning of one")
		}
		look := w
		look.everywhere = w.dir == ""
		s, err := look.find(ctx, c, o, word)
		if err != nil {
			return err
		}
		if yes, _ := cmd.Flags().GetBool("yes"); !yes {
			question := fmt.Sprintf("Delete %q (%s, in %s) for good?", term.Short(s.Title), s.ID, term.Line(s.Dir))
			if err := o.AskYes(cmd, question, "not deleted", strings.TrimSpace("duet-rpc session delete --native "+s.ID+w.again())); err != nil {
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
}

// again are the flags that name the agent.
func (w which) again() string {
	if w.agent == "" {
		return ""
	}
	return " --agent " + w.agent
}
