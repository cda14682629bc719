package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
)

// nativeSessions connects the commands about agents' own sessions with the command line.
func nativeSessions(s *settings) nativesessionOptions {
	return nativesessionOptions{
		Hub: func(cmd *cobra.Command, do func(context.Context, *client.Client) error) error {
			return turn.InWords(connected(cmd, s, do))
		},
		JSON:     func() bool { return s.JSON },
		Progress: func(cmd *cobra.Command, format string, args ...any) { progress(cmd, s, format, args...) },
		AskYes: func(cmd *cobra.Command, question, no, again string) error {
			return askYes(cmd, s, question, no, again)
		},
		Agent: func(cmd *cobra.Command, name *string, usage string) { agentFlag(cmd, s, name, usage) },
		Complete: func(list func(context.Context, *client.Client) []string) cobra.CompletionFunc {
			return completeFirst(s, list)
		},
		Root: func() (string, error) {
			p, err := s.Project()
			return p.Root, err
		},
		FullPath: fullPath, Help: hubStatusHelp, Starts: begins(),
	}
}

// Agents' own sessions: list, adopt and delete them.

// adoptPatience is after how long the command says that it waits for the agent.
const adoptPatience = 5 * time.Second

const adoptHelp = `Make one of the agent's own sessions, such as one of the agent's own program, a
conversation of Duet, with its whole history. Then "duet-rpc session continue"
continues it.

ID is an id of "duet-rpc session list --native", the beginning of one, or last: the
session with the latest activity.
`

// newAdopt returns the command that adopts a session.
func newAdopt(o nativesessionOptions) *cobra.Command {
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
				r, raw, err := hubclient.Call[struct {
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
					o.Progress(cmd, "it is %s now: `duet-rpc session continue %s TEXT` continues it", r.Task, r.Task)
				}
				return nil
			})
		},
	}
	w.addFlags(cmd, o)
	cmd.Flags().Lookup("dir").Usage = "its directory (default: the one that the agent reports)"
	cmd.Flags().StringVar(&title, "title", "", "a title for it (default: the agent's)")
	cmd.ValidArgsFunction = w.words(o, "last\tthe session with the latest activity")
	return cmd
}

// idOf returns the session id that a word names. If the agent cannot list sessions, the word
// is taken as the id.
func (w which) idOf(ctx context.Context, c *client.Client, o nativesessionOptions, word string) (string, error) {
	look := w
	look.dir = "" // dir is where the session continues, not a filter
	if word != "last" {
		look.everywhere = true
	}
	s, err := look.find(ctx, c, o, word)
	if word != "last" && client.KindOf(err) == "not_offered" {
		return word, nil
	}
	return s.ID, err
}

// addNativeDelete adds --native to `session delete`, which asks the agent to delete one of its
// own sessions. The command already has the flag yes.
func addNativeDelete(cmd *cobra.Command, o nativesessionOptions) {
	var w which
	var native bool
	w.addFlags(cmd, o)
	cmd.Flags().BoolVar(&native, "native", false, "a session that the agent keeps itself; a conversation of Duet that uses it\nstays, and its history is sent again when it continues")
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

// delete asks the agent to delete the session that a word names.
func (o nativesessionOptions) delete(cmd *cobra.Command, w which, word string) error {
	return o.Hub(cmd, func(ctx context.Context, c *client.Client) error {
		if word == "last" {
			return fmt.Errorf("name the session to delete by its id, or the beginning of it")
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
		_, raw, err := hubclient.Call[struct{}](ctx, c, "agent.deleteSession", map[string]any{"agent": w.agent, "native_session_id": s.ID})
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

// again returns the flags that name the agent.
func (w which) again() string {
	if w.agent == "" {
		return ""
	}
	return " --agent " + w.agent
}

// nativesessionOptions is what the commands need from the command line.
type nativesessionOptions struct {
	Hub      func(cmd *cobra.Command, do func(context.Context, *client.Client) error) error
	JSON     func() bool
	Progress func(cmd *cobra.Command, format string, args ...any)
	AskYes   func(cmd *cobra.Command, question, no, again string) error
	// Agent adds --agent with its completion.
	Agent func(cmd *cobra.Command, name *string, usage string)
	// Complete returns a completion function from a function that lists words.
	Complete func(list func(context.Context, *client.Client) []string) cobra.CompletionFunc
	// Root returns the project's directory.
	Root func() (string, error)
	// FullPath makes a path absolute for the hub.
	FullPath func(path string) (string, error)
	Help     string // shared by all commands
	Starts   map[string]string
}

// native is one of the agent's own sessions, as agent.sessions lists it.
type native struct {
	ID        string `json:"native_session_id"`
	Title     string `json:"title"`
	UpdatedAt string `json:"updated_at"`
	Dir       string `json:"working_dir"`
	Task      string `json:"task_id"`
}

type page struct {
	Agent    string   `json:"agent"`
	Sessions []native `json:"sessions"`
	Next     string   `json:"next_cursor"`
}

// which are the flags that select sessions.
type which struct {
	agent, dir string
	everywhere bool
}

func (w *which) addFlags(cmd *cobra.Command, o nativesessionOptions) {
	o.Agent(cmd, &w.agent, "the agent whose sessions they are (default: the configured one)")
	w.addPlaces(cmd)
}

func (w *which) addPlaces(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.dir, "dir", "", "the agent's own sessions in this directory (default: the project's)")
	_ = cmd.RegisterFlagCompletionFunc("dir", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs))
	cmd.Flags().BoolVar(&w.everywhere, "everywhere", false, "the agent's own sessions in all directories")
}

// params returns the parameters of agent.sessions.
func (w which) params(o nativesessionOptions, limit int) (map[string]any, error) {
	p := map[string]any{"agent": w.agent, "limit": limit}
	if w.everywhere {
		if w.dir != "" {
			return nil, errors.New("--dir and --everywhere exclude each other")
		}
		return p, nil
	}
	var err error
	if w.dir != "" {
		p["working_dir"], err = o.FullPath(w.dir)
	} else {
		p["working_dir"], err = o.Root()
	}
	return p, err
}

// pages calls take with each page until take returns true.
func (w which) pages(ctx context.Context, c *client.Client, o nativesessionOptions, take func(page) (enough bool)) error {
	const most = 200 // pages
	p, err := w.params(o, 500)
	for range most {
		if err != nil {
			return err
		}
		var got page
		if got, _, err = hubclient.Call[page](ctx, c, "agent.sessions", p); err != nil {
			return err
		}
		if take(got) || got.Next == "" {
			return nil
		}
		p["cursor"] = got.Next
	}
	return err
}

// find returns the session that a word names: an id, the beginning of an id, or last.
func (w which) find(ctx context.Context, c *client.Client, o nativesessionOptions, word string) (native, error) {
	var fit []native
	agent := ""
	err := w.pages(ctx, c, o, func(p page) bool {
		agent = p.Agent
		for _, s := range p.Sessions {
			switch {
			case s.ID == word:
				fit = []native{s}
				return true
			case word == "last" && (len(fit) == 0 || s.updated().After(fit[0].updated())):
				fit = []native{s}
			case word != "last" && strings.HasPrefix(s.ID, word):
				fit = append(fit, s)
			}
		}
		return false
	})
	switch {
	case err != nil:
		return native{}, err
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		return native{}, fmt.Errorf("%d sessions of %s begin with %q: give more of the id", len(fit), agent, word)
	case word == "last":
		return native{}, fmt.Errorf("%s has no session %s", agent, w.place("; --everywhere looks in all directories"))
	}
	return native{}, fmt.Errorf("%s has no session whose id begins with %q %s", agent, word, w.place("; --everywhere looks in all directories"))
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

func (s native) updated() time.Time {
	at, _ := time.Parse(time.RFC3339, s.UpdatedAt)
	return at
}

// words returns a completion function for session ids.
func (w *which) words(o nativesessionOptions, more ...string) cobra.CompletionFunc {
	return o.Complete(func(ctx context.Context, c *client.Client) []string {
		p, err := w.params(o, 50)
		if err != nil {
			return nil
		}
		got, _, _ := hubclient.Call[page](ctx, c, "agent.sessions", p)
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
		return fmt.Errorf("%q takes ID, got %s; `duet-rpc session list --native` lists them", cmd.CommandPath(), term.Count(len(args), "argument"))
	}
	return nil
}

// raw prints the hub's result unchanged if --json is given, and reports whether it did.
func (o nativesessionOptions) raw(cmd *cobra.Command, raw json.RawMessage) (bool, error) {
	if !o.JSON() {
		return false, nil
	}
	return true, term.Raw(cmd.OutOrStdout(), raw)
}

// addNativeList adds --native to `session list`, which lists the agent's own sessions. agent
// and limit are existing flags of the command.
func addNativeList(cmd *cobra.Command, o nativesessionOptions, agent *string, limit *int) {
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
				return fmt.Errorf("--%s is for Duet's sessions, and --native for the agent's own: leave one of them out", name)
			}
		}
		w.agent = *agent
		return o.list(cmd, w, *limit)
	}
}

// list prints a page of an agent's sessions, one line each.
func (o nativesessionOptions) list(cmd *cobra.Command, w which, limit int) error {
	return o.Hub(cmd, func(ctx context.Context, c *client.Client) error {
		p, err := w.params(o, limit)
		if err != nil {
			return err
		}
		got, raw, err := hubclient.Call[page](ctx, c, "agent.sessions", p)
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
			t.Row(s.ID, adopted, term.AgeOf(s.UpdatedAt), term.Short(s.Title), s.Dir)
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
