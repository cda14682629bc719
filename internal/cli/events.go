package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

const eventsHelp = `Print what happens in the project's daemon, a line for each event: its number in
the log, the time, its kind, its turn, and a summary. With --json each line is an
object: seq, kind, time, session, turn, turn_uuid, data; docs/methods.md lists the
kinds.

It runs until you interrupt it, even if another daemon replaces this one;
--since N begins with the events after number N. With --no-follow it prints what
the log contains so far (all of it, unless --since is given) and ends.

Exit status: 0 if the log was printed to its end; 1 if it was not; 130 if you
interrupted it.`

// eventsOptions are the flags of the command.
type eventsOptions struct {
	since    int64
	session  string
	kinds    []string
	follow   bool
	noFollow bool
}

func newEventsCommand(s *settings) *cobra.Command {
	var o eventsOptions
	cmd := &cobra.Command{
		Use:     "events",
		Short:   "Print what happens in the project's daemon",
		Long:    eventsHelp,
		Example: "  duet-rpc events --session 12 --since 0\n  duet-rpc events --kinds approval.opened,approval.closed --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.since < 0 {
				return errors.New("--since must be 0 or more")
			}
			for _, t := range o.kinds { // the daemon ignores unknown kinds
				if !slices.Contains(protocol.SubscribedKinds, t) {
					return fmt.Errorf("there is no kind of event %q; there are %s", t, strings.Join(protocol.SubscribedKinds, ", "))
				}
			}
			var since *int64
			if o.noFollow || cmd.Flags().Changed("since") {
				since = &o.since
			}
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				if o.noFollow || !o.follow {
					return printLog(ctx, cmd, s, c, o)
				}
				return followEvents(ctx, cmd, s, c, o, since)
			})
		},
	}
	f := cmd.Flags()
	f.Int64Var(&o.since, "since", 0, "begin with the events after this number; 0: with the first")
	f.StringVar(&o.session, "session", "", "only events of this session, such as 12, or of this turn, such as 12.3")
	f.StringSliceVar(&o.kinds, "kinds", nil, "only these kinds, separated by commas")
	f.BoolVarP(&o.follow, "follow", "f", true, "keep printing as events come")
	f.BoolVar(&o.noFollow, "no-follow", false, "stop at the end of the log")
	cmd.MarkFlagsMutuallyExclusive("follow", "no-follow")
	_ = cmd.RegisterFlagCompletionFunc("session", completeAll(s, turnCandidates))
	_ = cmd.RegisterFlagCompletionFunc("kinds", func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		before := word[:strings.LastIndex(word, ",")+1] // the kinds before the last comma
		var out []string
		for _, t := range protocol.SubscribedKinds {
			out = append(out, before+t)
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
	return cmd
}

// followEvents prints events until it is interrupted or its output is closed.
func followEvents(ctx context.Context, cmd *cobra.Command, s *settings, c *client.Client, o eventsOptions, since *int64) error {
	ctx, stop := term.WhileRead(ctx, cmd.OutOrStdout())
	defer stop()
	off := c.OnState(func(state client.State) {
		if state == client.Reconnecting {
			fmt.Fprintln(cmd.ErrOrStderr(), "— the daemon has gone; waiting for another one")
		}
	})
	defer off()
	shown := make(map[string]bool) // the hub sends open questions again after each reconnect
	sub, err := eventstream.Subscribe(ctx, c, eventstream.Options{
		Kinds: o.kinds, Session: o.session, Since: since,
	}, func(e eventstream.Event) {
		if d, ok := hubclient.DataOf(e).(*protocol.ApprovalOpenedEvent); ok {
			if shown[d.ApprovalID] {
				return
			}
			shown[d.ApprovalID] = true
		}
		printEvent(cmd.OutOrStdout(), e, s.JSON)
	})
	if err != nil {
		return err
	}
	defer sub.Close()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-sub.Done():
		return sub.Err()
	}
}

// printLog prints the log from event number o.since to its current end. It filters here and
// not in the hub, because only a subscription to all events shows where the log ends.
func printLog(ctx context.Context, cmd *cobra.Command, s *settings, c *client.Client, o eventsOptions) error {
	of := func(eventstream.Event) bool { return true }
	if o.session != "" {
		x, _, err := hubclient.Turn(ctx, c, o.session)
		if err != nil {
			return err
		}
		of = func(e eventstream.Event) bool { return e.TurnUUID == x.ID }
		if o.session == strconv.FormatInt(x.Session, 10) || o.session == x.SessionUUID || o.session == domain.LastTurn { // not a turn
			of = func(e eventstream.Event) bool { return e.Session == x.Session }
		}
	}
	last, err := hubclient.LastSeq(ctx, c)
	if err != nil {
		return err
	}
	if last <= o.since {
		return nil
	}
	ctx, cancel := hubclient.WhileConnected(ctx, c)
	defer cancel()
	done, over := make(chan struct{}), false // only the handler uses over
	sub, err := eventstream.Subscribe(ctx, c, eventstream.Options{Since: &o.since}, func(e eventstream.Event) {
		if over {
			return
		}
		at := e.Seq
		if d, ok := hubclient.DataOf(e).(*protocol.LaggedEvent); ok {
			at = d.To
		}
		// Open questions are sent once more, apart from the log.
		chosen := of(e) && (len(o.kinds) == 0 || slices.Contains(o.kinds, e.Kind))
		if e.Seq > 0 && (chosen || e.Kind == eventstream.KindLogDamaged) {
			printEvent(cmd.OutOrStdout(), e, s.JSON)
		}
		if at >= last {
			over = true
			close(done)
		}
	})
	if err != nil {
		return hubclient.OrGone(ctx, err)
	}
	defer sub.Close()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-sub.Done():
		return errors.Join(errors.New("the daemon sends no more events"), sub.Err())
	}
}

// Printing of events, one line each.

// printEvent prints an event on one line, as text or as JSON.
func printEvent(out io.Writer, e eventstream.Event, asJSON bool) {
	if asJSON {
		line, _ := json.Marshal(e) // the values were decoded from JSON, so this cannot fail
		_ = term.Raw(out, line)
		return
	}
	seq := "-"
	if e.Seq > 0 {
		seq = fmt.Sprint(e.Seq)
	}
	fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("%6s  %s  %-16s  %-5s  %s",
		seq, e.Time.Local().Format(time.TimeOnly), term.Line(e.Kind), term.Line(cmp.Or(e.Turn, "-")), gist(e)), " "))
}

// gist returns a summary of an event in one line.
func gist(e eventstream.Event) string {
	switch d := hubclient.DataOf(e).(type) {
	case *protocol.TurnStateEvent:
		text := domain.State(d.State).Words()
		if d.OldState != "" { // without it the session is new
			text = domain.State(d.OldState).Words() + " → " + text
		}
		if why := cmp.Or(d.Error, d.Reason); why != "" {
			text += ": " + why
		}
		return term.Short(text)
	case *protocol.Item:
		if d.Type == protocol.ItemToolCall {
			return below(d.ParentID) + term.Short(cmp.Or(d.Title, d.ToolName)+": "+string(cmp.Or(d.Status, protocol.ToolPending)))
		}
		return below(d.ParentID) + term.Short(cmp.Or(d.Role, string(d.Type))+": "+d.Text)
	case *protocol.TextEvent:
		return below(d.ParentID) + term.Short(d.Text)
	case *protocol.ApprovalOpenedEvent:
		return term.Short(turn.ShortID(d.ApprovalID) + " " + cmp.Or(d.Title, d.ToolName))
	case *protocol.ApprovalClosedEvent:
		text := turn.ShortID(d.ApprovalID) + " " + d.Status.Words() + " by " + d.DecidedBy
		if d.Comment != "" {
			text += ": " + d.Comment
		}
		return term.Short(text)
	case *protocol.ChangeEvent:
		return term.Short(fmt.Sprintf("%s +%d -%d", d.Path, d.Added, d.Removed))
	case *protocol.PlanEvent:
		done := 0
		for _, step := range d.Entries {
			if step.Status == "completed" {
				done++
			}
		}
		return fmt.Sprintf("%d of %d steps done", done, len(d.Entries))
	case *protocol.SessionEvent:
		switch {
		case d.AgentSessionID != "":
			return "the agent's own session is known"
		case d.AgentMode != "":
			return term.Short("mode " + d.AgentMode)
		}
	case *protocol.AgentSessionEvent:
		return term.Short(summaryOfReport(d.AgentSession))
	case *protocol.SessionDeletedEvent:
		return term.Short(strings.Join(d.Turns, ", "))
	case *protocol.GateIterationEvent:
		return fmt.Sprintf("turn %d of %d", d.Iteration, d.MaxIterations)
	case *protocol.GateStartedEvent:
		return term.Short(d.Gate)
	case *protocol.GateResultEvent:
		r := d.GateResult
		return term.Short(map[bool]string{true: "passed: ", false: "failed: "}[r.Passed] + r.Outcome())
	case *protocol.GatesEndedEvent:
		return term.Short(d.Gates().Words())
	case *protocol.TerminalExitedEvent:
		return term.Short(fmt.Sprintf("%s ended with %d", d.TerminalID, d.ExitCode))
	}
	return term.Short(rawjson.Inert(e.Data))
}

// summaryOfReport returns a summary of what an agent has reported about its session.
func summaryOfReport(s protocol.AgentSession) string {
	var parts []string
	if s.Mode != nil && s.Mode.Current != "" {
		parts = append(parts, "mode "+s.Mode.Current)
	}
	if s.Model != nil && s.Model.Current != "" {
		parts = append(parts, "model "+s.Model.Current)
	}
	for _, o := range s.Options {
		if o.Category != "mode" && o.Category != "model" && o.Current != "" {
			parts = append(parts, o.ID+" "+o.Current)
		}
	}
	if n := len(s.Commands); n > 0 {
		parts = append(parts, fmt.Sprintf("%d commands", n))
	}
	if s.Info != nil && s.Info.Title != "" {
		parts = append(parts, s.Info.Title)
	}
	return strings.Join(parts, ", ")
}

// below returns the prefix for text of a sub-agent, whose tool call has an id.
func below(parentID string) string {
	if parentID == "" {
		return ""
	}
	return "  "
}
