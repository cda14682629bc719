package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

const hostsStopHelp = `Remove a host that was made when it was needed (start in [hosts.NAME]), with its stop
command. Before that, the work and the transcripts of its sessions come here. If some
cannot come, or an agent works or waits for you, they are listed and the host stays.

Exit status: 0 if the host is removed, 1 if it stays.`

func newHostsStop(s *settings) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:               "stop HOST",
		Short:             "Remove a host that was made, after its work came here",
		Long:              hostsStopHelp,
		Args:              exactly("HOST"),
		ValidArgsFunction: completeHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := term.UntilInterrupted(cmd.Context())
			defer stop()
			err := s.stopHost(ctx, cmd, args[0], force)
			if err != nil && ctx.Err() != nil {
				return term.ErrInterrupted
			}
			return err
		},
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "also remove it if work would be lost")
	return cmd
}

func (s *settings) stopHost(ctx context.Context, cmd *cobra.Command, name string, force bool) error {
	h, err := config.HostNamed(name, os.Getenv)
	switch {
	case err != nil:
		return err
	case !h.IsMade():
		return fmt.Errorf("[hosts.%s] has no start, so Duet did not make %s and does not remove it", name, name)
	case len(h.Stop) == 0:
		return fmt.Errorf("[hosts.%s] has no stop: add the command that removes the host", cmp.Or(h.Of, name))
	}
	own := *s
	if own.Host == "" {
		own.Here = own.Root
	}
	own.Host, own.Root = name, ""
	there, err := own.Remote()
	if err != nil {
		return err
	}
	root, wasMade := there.WasMade()
	switch {
	case wasMade && root != there.Here():
		return fmt.Errorf("%s was made for the project %s: run this there", name, term.HomePath(root))
	case !wasMade && !force:
		return fmt.Errorf("%s is not there: it was not made, or it is removed; --force runs its stop all the same", name)
	}
	came, lost := own.bringAll(ctx, there)
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(lost) > 0 && !force {
		for _, text := range lost {
			progress(cmd, s, "%s", text)
		}
		return fmt.Errorf("%s stays: `duet-rpc hosts stop --force %s` removes it all the same", name, name)
	}
	if err := there.Remove(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if s.JSON {
		return term.JSON(cmd.OutOrStdout(), map[string]any{"host": name, "fetched": append([]string{}, came...), "lost": append([]string{}, lost...)})
	}
	text := name + " is removed"
	if len(came) > 0 {
		text += "; the work of " + strings.Join(came, ", ") + " is here"
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), text+".")
	return err
}

// bringAll fetches the work of all sessions of the host of the settings that began with files of this machine. lost says what
// ends or is lost with the host.
func (s *settings) bringAll(ctx context.Context, h *hubprocess.Host) (came, lost []string) {
	known := slices.DeleteFunc(s.awayHere(), func(x worktree.Session) bool { return x.Host != h.Name })
	projects, err := turnsOf(protocol.ListTurnsParams{Limit: new(uint(1000))}).askHost(ctx, h)
	if err != nil {
		lost = append(lost, err.Error())
		for _, x := range known {
			lost = append(lost, fmt.Sprintf("%d@%s: what it did since it came here %s ago", x.Number, x.Host, term.Age(x.Active)))
		}
		return nil, lost
	}
	isKnown := map[string]bool{}
	for _, x := range known {
		isKnown[x.ID] = true
	}
	for _, p := range projects {
		if p.Error != "" {
			lost = append(lost, fmt.Sprintf("the project %s there: %s", p.Root, p.Error))
		}
		for _, x := range p.read {
			switch {
			case !x.State.Ended():
				lost = append(lost, fmt.Sprintf("%s@%s: %s", x.Name, h.Name, x.State.Words()))
			case !isKnown[x.SessionUUID]:
				isKnown[x.SessionUUID] = true // one line for each session
				lost = append(lost, fmt.Sprintf("%d@%s: it did not begin with files of this project, so its work does not come here", x.Session, h.Name))
			}
		}
	}
	for _, x := range known {
		name := fmt.Sprintf("%d@%s", x.Number, x.Host)
		switch isThere, err := s.bringOne(ctx, h, x.ID); {
		case err != nil:
			lost = append(lost, name+": "+turn.InWords(err).Error())
		case isThere:
			came = append(came, name)
		}
	}
	return came, lost
}

// bringOne fetches the work of a session of the host. It reports whether the host has the session: one of an earlier host of
// this name is lost already.
func (s *settings) bringOne(ctx context.Context, h *hubprocess.Host, id string) (isThere bool, err error) {
	c, err := h.Dial(ctx, hubprocess.StartIfUsed)
	if hubprocess.IsNeverUsed(err) || hubprocess.LacksProject(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer c.Close()
	session, _, err := hubclient.Turn(ctx, c, id)
	if client.KindOf(err) == "not_found" {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if w := session.Worktree; w != nil && w.Gone {
		return true, nil // discard has fetched it
	}
	a, err := host.AwayOf(ctx, &s.Settings, session)
	if err == nil && a == nil {
		err = errors.New("it has no worktree there")
	}
	if err == nil {
		_, _, err = a.Fetch(ctx, c, session)
	}
	return true, err
}

// inShell returns a command as a line that a person can run.
func inShell(command []string) string {
	words := slices.Clone(command)
	for i, word := range words {
		words[i] = shellcommand.Argument(word)
	}
	return strings.Join(words, " ")
}
