// Package nativesession has the commands of the shell about the sessions that agents
// keep themselves: listing them, adopting one, deleting one.
package nativesession

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
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// Options are what the commands need of the command line that they are part of.
type Options struct {
	Hub      func(cmd *cobra.Command, do func(context.Context, *client.Client) error) error
	JSON     func() bool
	Progress func(cmd *cobra.Command, format string, args ...any)
	AskYes   func(cmd *cobra.Command, question, no, again string) error
	// Agent adds --agent, with its completion.
	Agent func(cmd *cobra.Command, name *string, usage string)
	// Complete lists words while a shell completes.
	Complete func(list func(context.Context, *client.Client) []string) cobra.CompletionFunc
	// Root is the project's directory.
	Root func() (string, error)
	// FullPath is a path as the hub understands it.
	FullPath func(path string) (string, error)
	Help     string // what is said of every command
	Starts   map[string]string
}

// A native is a session of an agent's, as agent.sessions lists it.
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

// Which are the sessions that a command means.
type which struct {
	agent, dir string
	everywhere bool
}

func (w *which) addFlags(cmd *cobra.Command, o Options) {
	o.Agent(cmd, &w.agent, "the agent whose sessions they are (default: the configured one)")
	w.addPlaces(cmd)
}

func (w *which) addPlaces(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.dir, "dir", "", "the agent's own sessions in this directory (default: the project's)")
	_ = cmd.RegisterFlagCompletionFunc("dir", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs))
	cmd.Flags().BoolVar(&w.everywhere, "everywhere", false, "the agent's own sessions in all directories")
}

// params are those of agent.sessions.
func (w which) params(o Options, limit int) (map[string]any, error) {
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

// pages calls take with each page until it has enough.
func (w which) pages(ctx context.Context, c *client.Client, o Options, take func(page) (enough bool)) error {
	const most = 200 // pages
	p, err := w.params(o, 500)
	for range most {
		if err != nil {
			return err
		}
		var got page
		if got, _, err = wire.Call[page](ctx, c, "agent.sessions", p); err != nil {
			return err
		}
		if take(got) || got.Next == "" {
			return nil
		}
		p["cursor"] = got.Next
	}
	return err
}

// find is the session that a word names: an id, the beginning of one, or last.
func (w which) find(ctx context.Context, c *client.Client, o Options, word string) (native, error) {
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

// place says where was looked.
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

// words completes ids.
func (w *which) words(o Options, more ...string) cobra.CompletionFunc {
	return o.Complete(func(ctx context.Context, c *client.Client) []string {
		p, err := w.params(o, 50)
		if err != nil {
			return nil
		}
		got, _, _ := wire.Call[page](ctx, c, "agent.sessions", p)
		words := more
		for _, s := range got.Sessions {
			words = append(words, s.ID+"\t"+term.Short(term.Age(s.UpdatedAt)+" · "+s.Title))
		}
		return words
	})
}

// exactlyID refuses all but one argument.
func exactlyID(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return fmt.Errorf("%q takes ID, got %s; `duet-rpc session list --native` lists them", cmd.CommandPath(), term.Count(len(args), "argument"))
	}
	return nil
}

// raw prints what the hub answered, where --json wants that.
func (o Options) raw(cmd *cobra.Command, raw json.RawMessage) (bool, error) {
	if !o.JSON() {
		return false, nil
	}
	return true, term.Raw(cmd.OutOrStdout(), raw)
}
