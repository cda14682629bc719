package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// duet-rpc build: build the project.

const buildHelp = `Build the project: with the command of [[builds]] in its configuration or yours, or
else one that its files suggest (go.mod, package.json, Cargo.toml, Makefile and others).
` + "`duet-rpc build --list`" + ` shows which there are; the first one is built unless you name
another. What it prints is printed as it comes. Connected editors are notified of the
end and of the problems found.

A build runs programs of the project, so none runs while the project's configuration
waits for your trust (` + "`duet-rpc trust`" + `).

With --json the result is printed: if it has failed, with "kind": "build_failed" and the
diagnostics.

Exit status: 0 if it succeeded; 1 if it failed or was refused; 130 if you interrupted it,
which ends it with everything that it has started.`

// newBuild returns the build command.
func newBuild(s *settings) *cobra.Command {
	var backend, list bool
	cmd := &cobra.Command{
		Use:     "build [NAME]",
		Short:   "Build the project",
		Long:    buildHelp,
		Example: "  duet-rpc build\n  duet-rpc build --list\n  duet-rpc build server --json",
		Args:    atMost("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			b := building{cmd: cmd, settings: s, params: protocol.RunBuildParams{Backend: backend}}
			if len(args) > 0 {
				b.params.Name = args[0]
			}
			return turn.InWords(b.connected(list))
		},
	}
	cmd.Flags().BoolVar(&backend, "backend", false, "build the backend: the first one with backend = true")
	cmd.Flags().BoolVar(&list, "list", false, "list what can be built, and build nothing")
	return cmd
}

// building is one run of the command.
type building struct {
	cmd      *cobra.Command
	settings *settings
	params   protocol.RunBuildParams
}

// connected starts a build with the hub, or lists builds.
func (b *building) connected(list bool) error {
	h, err := openAttended(b.cmd.Context(), &b.settings.Settings, nil)
	if err != nil {
		return err
	}
	defer h.Close()
	ctx, cancel := context.WithCancel(h.Context())
	defer cancel()
	return term.OrInterrupted(h.Interrupts, cancel, func() error {
		if list {
			return b.list(ctx, h.Client)
		}
		return b.build(ctx, h.Client)
	})
}

func (b *building) list(ctx context.Context, c *client.Client) error {
	r, raw, err := hubclient.Call[protocol.BuildList](ctx, c, "build.list", nil)
	if err != nil {
		return err
	}
	out := b.cmd.OutOrStdout()
	if b.settings.JSON {
		return term.Raw(out, raw)
	}
	table := term.NewTable(out, "BUILD", "COMMAND", "")
	for _, t := range r.Builds {
		var notes []string
		if t.Backend {
			notes = append(notes, "backend")
		}
		if t.Detected {
			notes = append(notes, "suggested by the project's files")
		}
		table.Row(t.Name, t.Line(), strings.Join(notes, ", "))
	}
	return table.Flush()
}

func (b *building) build(ctx context.Context, c *client.Client) error {
	ended := b.follow(c)
	begun := time.Now()
	var raw json.RawMessage
	err := c.Call(ctx, "build.run", b.params, &raw, client.WithTimeout(0))
	var refused *client.Error
	failed := errors.As(err, &refused) && refused.Kind() == "build_failed"
	if err == nil || failed {
		b.awaitEnd(ctx, c, ended)
	}
	out := b.cmd.OutOrStdout()
	switch {
	case failed && b.settings.JSON:
		if err := term.Raw(out, refused.Data); err != nil {
			return err
		}
		return exitStatus(1)
	case failed:
		return errors.New(refused.Message)
	case err != nil:
		return err
	case b.settings.JSON:
		return term.Raw(out, raw)
	}
	var r protocol.BuildResult
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("reading the daemon's answer to build.run: %w", err)
	}
	progress(b.cmd, b.settings, "%s succeeded in %s%s", r.Name, term.Duration(time.Since(begun)), r.Found())
	return nil
}

// follow prints the build's output until the channel that it returns is closed.
func (b *building) follow(c *client.Client) <-chan struct{} {
	ended := make(chan struct{})
	end := sync.OnceFunc(func() { close(ended) })
	out := b.cmd.OutOrStdout()
	c.On("buildProgress", func(params json.RawMessage) {
		var p protocol.BuildProgress
		if json.Unmarshal(params, &p) != nil {
			return
		}
		switch p.Stage {
		case protocol.BuildWaiting:
			progress(b.cmd, b.settings, "waiting for another build of %s to end", p.Name)
		case protocol.BuildStarted:
			progress(b.cmd, b.settings, "%s: %s", p.Name, p.Line())
		case protocol.BuildOutput:
			b.print(out, p.Output)
		default:
			end()
		}
	})
	return ended
}

// print prints output of the build command. It can contain anything, because it comes from the
// project's programs.
func (b *building) print(out io.Writer, text string) {
	if b.settings.JSON {
		return
	}
	for line := range strings.Lines(text) {
		line, newline := strings.CutSuffix(line, "\n")
		fmt.Fprint(out, term.Exact(visible.WithoutColors(line)))
		if newline {
			fmt.Fprintln(out)
		}
	}
}

// awaitEnd waits until all output that was received has been printed.
func (b *building) awaitEnd(ctx context.Context, c *client.Client, ended <-chan struct{}) {
	const rest = time.Second // the end event may have been dropped
	for {
		select {
		case <-ended:
			if n := c.Dropped(); n > 0 {
				progress(b.cmd, b.settings, "%d parts of the output came too fast and are missing here", n)
			}
			return
		case <-ctx.Done():
			return
		case <-time.After(rest):
			if c.Dropped() > 0 {
				progress(b.cmd, b.settings, "%d parts of the output came too fast and are missing here", c.Dropped())
				return
			}
		}
	}
}
