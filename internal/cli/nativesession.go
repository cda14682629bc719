package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// Agents' own sessions: list, adopt and delete them.

// adoptPatience is after how long the command says that it waits for the agent.
const adoptPatience = 5 * time.Second

const adoptHelp = `Make one of the agent's own sessions, such as one of the agent's own program, a session
of Duet, with its whole history, and print its turn. Then "duet-rpc prompt --continue"
continues it.

ID is an id of "duet-rpc session list --native", the beginning of one, or last: the
session with the latest activity.
`

// newAdopt returns the command that adopts a session.
func newAdopt(s *settings) *cobra.Command {
	var w which
	var title string
	cmd := &cobra.Command{
		Use: "adopt ID|last", Short: "Take over a session that was begun in an agent's own program", Args: exactlyID, Annotations: begins(),
		Long:    adoptHelp + hubStatusHelp,
		Example: "  duet-rpc session adopt last\n  duet-rpc session adopt 5c6a836b --agent claude",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				id, err := w.idOf(ctx, c, s, args[0])
				if err != nil {
					return err
				}
				params := protocol.AdoptParams{Agent: w.agent, ID: id, Title: title}
				if params.WorkingDir, err = s.fullPath(w.dir); err != nil {
					return err
				}
				late := time.AfterFunc(adoptPatience, func() {
					progress(cmd, s, "the agent is asked for the session; a long one can take minutes, and C-c gives up")
				})
				defer late.Stop()
				r, raw, err := hubclient.SessionAdopt(ctx, c, params)
				if err != nil {
					return err
				}
				if s.JSON {
					return term.Raw(cmd.OutOrStdout(), raw)
				}
				fmt.Fprintln(cmd.OutOrStdout(), r.Name)
				if r.Note != "" {
					progress(cmd, s, "%s", r.Note)
				}
				if r.Adopted {
					progress(cmd, s, "it is %s now: `duet-rpc prompt --continue %d TEXT` continues it", r.Name, r.Session)
				}
				return nil
			})
		},
	}
	w.addFlags(cmd, s)
	cmd.Flags().Lookup("dir").Usage = "its directory (default: the one that the agent reports)"
	cmd.Flags().StringVar(&title, "title", "", "a title for it (default: the agent's)")
	cmd.ValidArgsFunction = w.words(s, "last\tthe session with the latest activity")
	return cmd
}

// idOf returns the session id that a word names. If the agent cannot list sessions, the word
// is taken as the id.
func (w which) idOf(ctx context.Context, c *client.Client, s *settings, word string) (string, error) {
	look := w
	look.dir = "" // dir is where the session continues, not a filter
	if word != "last" {
		look.everywhere = true
	}
	x, err := look.find(ctx, c, s, word)
	if word != "last" && client.KindOf(err) == "not_offered" {
		return word, nil
	}
	return x.ID, err
}

// addNativeDelete adds --native to `session delete`, which asks the agent to delete one of its
// own sessions. The command already has the flag yes.
func addNativeDelete(cmd *cobra.Command, s *settings) {
	var w which
	var native bool
	w.addFlags(cmd, s)
	cmd.Flags().BoolVar(&native, "native", false, "a session that the agent keeps itself; a session of Duet that uses it\nstays, and its "+
		"history is sent again when it continues")
	cmd.Example += "\n  duet-rpc session delete --native 5c6a836b --agent claude"
	own, words := cmd.RunE, cmd.ValidArgsFunction
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if native {
			return w.delete(cmd, s, args[0])
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
			return w.words(s)(cmd, args, word)
		}
		return words(cmd, args, word)
	}
}

// delete asks the agent to delete the session that a word names.
func (w which) delete(cmd *cobra.Command, s *settings, word string) error {
	return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
		if word == "last" {
			return fmt.Errorf("name the session to delete by its id, or the beginning of it")
		}
		look := w
		look.everywhere = w.dir == ""
		x, err := look.find(ctx, c, s, word)
		if err != nil {
			return err
		}
		if yes, _ := cmd.Flags().GetBool("yes"); !yes {
			question := fmt.Sprintf("Delete %q (%s, in %s) for good?", term.Short(x.Title), x.ID, term.Line(x.WorkingDir))
			if err := askYes(cmd, s, question, "not deleted", strings.TrimSpace("duet-rpc session delete --native "+x.ID+w.again())); err != nil {
				return err
			}
		}
		_, raw, err := hubclient.Call[struct{}](ctx, c, "agent.forget", protocol.NativeSessionDeleteParams{Agent: w.agent, ID: x.ID})
		if err != nil {
			return err
		}
		if s.JSON {
			return term.Raw(cmd.OutOrStdout(), raw)
		}
		progress(cmd, s, "%s is deleted", x.ID)
		return nil
	})
}

// again returns the flags that name the agent.
func (w which) again() string {
	if w.agent == "" {
		return ""
	}
	return " --agent " + w.agent
}

// which are the flags that select sessions.
type which struct {
	agent, dir string
	everywhere bool
}

func (w *which) addFlags(cmd *cobra.Command, s *settings) {
	agentFlag(cmd, s, &w.agent, "the agent of the sessions (default: the configured one)")
	w.addPlaces(cmd)
}

func (w *which) addPlaces(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.dir, "dir", "", "the agent's own sessions in this directory (default: the project's)")
	_ = cmd.RegisterFlagCompletionFunc("dir", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs))
	cmd.Flags().BoolVar(&w.everywhere, "everywhere", false, "the agent's own sessions in all directories")
}

// params returns the parameters of agent.sessions.
func (w which) params(s *settings, limit uint) (p protocol.NativeSessionListParams, err error) {
	p.Agent, p.Limit = w.agent, &limit
	if w.everywhere {
		if w.dir != "" {
			return p, errors.New("--dir and --everywhere exclude each other")
		}
		return p, nil
	}
	switch {
	case w.dir != "":
		p.WorkingDir, err = s.fullPath(w.dir)
	case s.Host != "":
		p.WorkingDir = "." // of the daemon there
	default:
		var here project.Project
		here, err = s.Project()
		p.WorkingDir = here.Root
	}
	return p, err
}

// pages calls take with each page until take returns true.
func (w which) pages(ctx context.Context, c *client.Client, s *settings, take func(protocol.NativeSessionList) (enough bool)) error {
	const most = 200 // pages
	p, err := w.params(s, 500)
	for range most {
		if err != nil {
			return err
		}
		var got protocol.NativeSessionList
		if got, _, err = hubclient.AgentSessions(ctx, c, p); err != nil {
			return err
		}
		if take(got) || got.NextCursor == "" {
			return nil
		}
		p.Cursor = got.NextCursor
	}
	return err
}

// find returns the session that a word names: an id, the beginning of an id, or last.
func (w which) find(ctx context.Context, c *client.Client, s *settings, word string) (protocol.NativeSession, error) {
	var fit []protocol.NativeSession
	agent := ""
	err := w.pages(ctx, c, s, func(p protocol.NativeSessionList) bool {
		agent = p.Agent
		for _, s := range p.Sessions {
			switch {
			case s.ID == word:
				fit = []protocol.NativeSession{s}
				return true
			case word == "last" && (len(fit) == 0 || updated(s).After(updated(fit[0]))):
				fit = []protocol.NativeSession{s}
			case word != "last" && strings.HasPrefix(s.ID, word):
				fit = append(fit, s)
			}
		}
		return false
	})
	switch {
	case err != nil:
		return protocol.NativeSession{}, err
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		return protocol.NativeSession{}, fmt.Errorf("%d sessions of %s begin with %q: give more of the id", len(fit), agent, word)
	case word == "last":
		return protocol.NativeSession{}, fmt.Errorf("%s has no session %s", agent, w.place("; --everywhere looks in all directories"))
	}
	return protocol.NativeSession{}, fmt.Errorf("%s has no session whose id begins with %q %s", agent, word,
		w.place("; --everywhere looks in all directories"))
}

// place says where the command searched.
func (w which) place(more string) string {
	switch {
	case w.everywhere:
		return "in any directory"
	case w.dir != "":
		return "in " + w.dir + more
	}
	return "in this project's directory" + more
}

func updated(s protocol.NativeSession) time.Time {
	at, _ := time.Parse(time.RFC3339, s.UpdatedAt)
	return at
}

// words returns a completion function for session ids.
func (w *which) words(s *settings, more ...string) cobra.CompletionFunc {
	return completeFirst(s, func(ctx context.Context, c *client.Client) []string {
		p, err := w.params(s, 50)
		if err != nil {
			return nil
		}
		got, _, _ := hubclient.AgentSessions(ctx, c, p)
		words := more
		for _, s := range got.Sessions {
			words = append(words, s.ID+"\t"+term.Short(term.AgeOf(s.UpdatedAt)+" · "+s.Title))
		}
		return words
	})
}

// exactlyID requires exactly one argument.
func exactlyID(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return fmt.Errorf("%q takes ID, got %s; `duet-rpc session list --native` lists them", cmd.CommandPath(),
			term.Count(len(args), "argument"))
	}
	return nil
}

// addNativeList adds --native to `session list`, which lists the agent's own sessions. agent
// and limit are existing flags of the command.
func addNativeList(cmd *cobra.Command, s *settings, agent *string, limit *uint) {
	var w which
	var native bool
	cmd.Flags().BoolVar(&native, "native", false,
		"sessions that the agent keeps itself, however they were begun; adopt one with\n`duet-rpc session adopt`")
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
		for _, name := range []string{"state", "archived"} {
			if cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s is for Duet's sessions, and --native for the agent's own: leave one of them out", name)
			}
		}
		w.agent = *agent
		return w.list(cmd, s, *limit)
	}
}

// list prints a page of an agent's sessions, one line each.
func (w which) list(cmd *cobra.Command, s *settings, limit uint) error {
	p, err := w.params(s, limit)
	if err != nil {
		return err
	}
	return askHub(cmd, s, "agent.sessions", p, func(got protocol.NativeSessionList) error {
		if len(got.Sessions) == 0 {
			progress(cmd, s, "%s has no session %s", got.Agent, w.place("; --everywhere lists those in all directories"))
			return nil
		}
		t := term.NewTable(cmd.OutOrStdout(), "ID", "ADOPTED", "AGE", "TITLE", "DIRECTORY")
		t.Below("DIRECTORY", "TITLE")
		for _, s := range got.Sessions {
			t.Row(s.ID, cmp.Or(s.Turn, "-"), term.AgeOf(s.UpdatedAt), term.Short(s.Title), s.WorkingDir)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		if got.NextCursor != "" {
			progress(cmd, s, "there are more: --limit %d", limit*4)
		}
		return nil
	})
}
