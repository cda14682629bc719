package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// worktreeUsage describes the flag of commands that begin a session.
const worktreeUsage = "run the agent in its own git worktree, or with =false not (default: as configured)"

// worktreeFlag adds --worktree. to stays nil without the flag: the configuration decides.
func worktreeFlag(cmd *cobra.Command, to **bool) {
	cmd.Flags().BoolFunc("worktree", worktreeUsage, func(text string) error {
		yes, err := strconv.ParseBool(text)
		*to = &yes
		return err
	})
}

const landHelp = `Bring the changes in the worktree of a session, such as 12, to the branch that was
checked out when it began (duet-rpc prompt --worktree). Files that are not committed
become a commit. Without SESSION it is that of the worktree in which this runs, or else
the last one.

If files conflict, or uncommitted files of yours are in the way, nothing is changed.
Whatever was landed before is not landed again. Files that are committed without the
filter that .gitattributes names for them are listed (docs/security.md).

If SESSION is one of several attempts (duet-rpc prompt --agents), --discard-others then
discards the worktrees of the others. Their work is kept in git refs, which this prints.
If landing fails, nothing is discarded. Work on hosts comes here before it is discarded. An
attempt on a host that cannot be reached stays: the same command again discards it.
`

func newLand(s *settings) *cobra.Command {
	params := protocol.ChooseAttemptParams{}
	var discardOthers, here bool
	cmd := &cobra.Command{
		Use: "land [SESSION]", Args: atMost("SESSION"), ValidArgsFunction: completeFirst(s, turnCandidates),
		Short:   "Bring the changes in a session's worktree to your branch",
		Long:    landHelp + hubStatusHelp,
		Example: "  duet-rpc land\n  duet-rpc land 12 --squash --message \"Fix the parser\"\n  duet-rpc land 12 --discard-others",
	}
	method := landFlags(cmd, &params.LandParams)
	cmd.Flags().BoolVar(&discardOthers, "discard-others", false, "then discard the worktrees of the other attempts at the same prompt")
	cmd.Flags().BoolVarP(&params.Interrupt, "yes", "y", false, "with --discard-others: interrupt the others that still work, without asking")
	cmd.Flags().BoolVar(&here, "here", false, "of a session on a host: land what came here last, and ask nothing of the host")
	cmd.MarkFlagsMutuallyExclusive("here", "discard-others")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case discardOthers && len(args) == 0:
			return errors.New("--discard-others needs SESSION, the attempt that you choose; `duet-rpc attempts` compares them")
		case params.Interrupt && !discardOthers:
			return errors.New("--yes goes with --discard-others: landing alone asks nothing")
		}
		params.Method = method()
		if here {
			return landFetched(cmd, s, args, params.LandParams)
		}
		return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
			session, err := worktreeSession(ctx, c, args)
			if err != nil {
				return err
			}
			var r protocol.ChooseAttemptResult
			var raw json.RawMessage
			named := s
			if discardOthers {
				g, found := s.groupOf(ctx, args)
				switch {
				case found != nil:
					return found
				case len(g.away) > 0:
					named = s.at("") // the lines name hosts themselves
					r, raw, err = g.choose(ctx, cmd, c, params, session)
				default:
					r, raw, err = choose(ctx, cmd, s, c, params, session)
				}
			} else {
				r.LandResult, raw, err = s.land(ctx, c, session, params.LandParams)
			}
			if err != nil {
				return err
			}
			if s.JSON {
				return term.Raw(cmd.OutOrStdout(), raw)
			}
			showLanded(s.newView(cmd.OutOrStdout(), cmd.ErrOrStderr(), false), r.LandResult)
			showOthers(named.newView(cmd.OutOrStdout(), cmd.ErrOrStderr(), false), r.Discarded)
			return nil
		})
	}
	return cmd
}

// showOthers shows what has become of the other attempts.
func showOthers(view *turn.View, others []protocol.DiscardedAttempt) {
	for _, d := range others {
		text := "discarded " + d.Turn + " · " + d.Agent
		switch {
		case d.Error != "":
			text = d.Turn + " · " + d.Agent + " stays: " + d.Error
		case d.Ref != "":
			text += "; its work is kept: git branch NAME " + d.Ref
		}
		view.Note(term.Line(text))
		_, host, _ := strings.Cut(d.Turn, "@")
		showHostLeft(view, host, d.DiscardResult)
	}
}

// choose lands a session and discards the other attempts at its prompt. It asks before it interrupts any.
func choose(
	ctx context.Context, cmd *cobra.Command, s *settings, c *client.Client, params protocol.ChooseAttemptParams, session protocol.Turn,
) (protocol.ChooseAttemptResult, json.RawMessage, error) {
	if err := checkEnded(session); err != nil {
		return protocol.ChooseAttemptResult{}, nil, err
	}
	params.Session = protocol.Ref(session.ID)
	r, raw, err := hubclient.AttemptChoose(ctx, c, params)
	if data, is := worktreeProblem(err); !is || data.Kind != "bad_state" || params.Interrupt || session.Worktree == nil {
		return r, raw, landError(err, session)
	}
	refused, _, _ := strings.Cut(turn.InWords(err).Error(), ": ")
	if err := askYes(
		cmd, s, refused+". Interrupt and discard them?", "nothing was landed, because "+refused,
		fmt.Sprintf("duet-rpc land %s --discard-others", session.Name),
	); err != nil {
		return r, raw, err
	}
	params.Interrupt = true
	r, raw, err = hubclient.AttemptChoose(ctx, c, params)
	return r, raw, landError(err, session)
}

// checkEnded refuses to land an attempt whose agent works.
func checkEnded(session protocol.Turn) error {
	if !session.State.Ended() || session.AreChecked() {
		return fmt.Errorf("%s still works: wait for its end, or interrupt it: duet-rpc session interrupt %s", session.Name, session.Name)
	}
	return nil
}

// landFlags adds the flags about how a worktree is landed. method returns the chosen method.
func landFlags(cmd *cobra.Command, params *protocol.LandParams) (method func() protocol.LandMethod) {
	var squash, rebase, patch bool
	f := cmd.Flags()
	f.BoolVar(&squash, "squash", false, "make one commit of all changes")
	f.BoolVar(&rebase, "rebase", false, "repeat each commit on your branch, without a merge commit")
	f.BoolVar(&patch, "patch", false, "change your files, without a commit")
	f.StringVar(&params.Into, "into", "", "land on `BRANCH` (default: the one that was checked out when it began)")
	f.StringVarP(&params.Message, "message", "m", "", "the message of the new commit (default: a plain one)")
	cmd.MarkFlagsMutuallyExclusive("squash", "rebase", "patch")
	return func() protocol.LandMethod {
		switch {
		case squash:
			return "squash"
		case rebase:
			return "rebase"
		case patch:
			return "patch"
		}
		return ""
	}
}

func land(
	ctx context.Context, c *client.Client, session protocol.Turn, params protocol.LandParams,
) (protocol.LandResult, json.RawMessage, error) {
	params.Session = protocol.Ref(session.ID)
	r, raw, err := hubclient.SessionLand(ctx, c, params)
	return r, raw, landError(err, session)
}

// worktreeSession returns the session that the arguments name, by default the one in whose worktree
// the command runs, or else the last one.
func worktreeSession(ctx context.Context, c *client.Client, args []string) (protocol.Turn, error) {
	id := "last"
	if len(args) > 0 {
		id = args[0]
	} else if dir, err := os.Getwd(); err == nil {
		sessions, _, err := hubclient.Sessions(ctx, c, protocol.SessionListParams{Filter: "normal", Limit: new(uint(offered))})
		if err != nil {
			return protocol.Turn{}, err
		}
		for _, s := range sessions {
			if s.Worktree == nil {
				continue
			}
			if below, err := filepath.Rel(s.Worktree.Dir, dir); err == nil && filepath.IsLocal(below) {
				id = s.ID
				break
			}
		}
	}
	session, _, err := hubclient.Turn(ctx, c, id)
	return session, err
}

// unfiltered says what is wrong with a file that landed as it is.
const unfiltered = "committed without the filter that .gitattributes names; look at it before you push"

func showLanded(view *turn.View, r protocol.LandResult) {
	for _, path := range r.Nested {
		view.Note("not landed, a nested repository: " + term.Line(path))
	}
	showListing(view, unfiltered, r.Unfiltered)
	if len(r.Files)+len(r.Commits) == 0 {
		view.Note("there is nothing new to land")
		return
	}
	text := "landed on " + term.Line(r.Branch) + ": " + term.Count(len(r.Commits), "commit") + ", "
	if r.Branch == "" {
		text = "landed without a commit: "
	}
	view.Note(text + term.Count(len(r.Files)+r.More, "file"))
}

// landError adds to the error the files and what to do.
func landError(err error, session protocol.Turn) error {
	data, is := worktreeProblem(err)
	if !is {
		return err
	}
	var b strings.Builder
	b.WriteString("nothing was landed: ")
	switch data.Kind {
	case "conflict":
		b.WriteString("these files conflict with your branch")
	case "overlap":
		b.WriteString("these files of yours are not committed and would be overwritten")
	default:
		return err
	}
	for _, path := range data.Paths {
		b.WriteString("\n  " + term.Line(path))
	}
	if data.More > 0 {
		b.WriteString("\n  and " + term.Count(data.More, "more file"))
	}
	if data.Kind == "conflict" {
		b.WriteString("\nlet the agent merge: duet-rpc prompt --continue " + strconv.FormatInt(
			session.Session, 10,
		) + " \"Merge " + cmp.Or(data.Ref, "my branch") + " into yours and resolve the conflicts\"")
	} else {
		b.WriteString("\ncommit or stash them first")
	}
	return errors.New(b.String())
}

// worktreeProblem returns the data of an error about a worktree.
func worktreeProblem(err error) (data protocol.WorktreeError, is bool) {
	if data, is := protocol.WorktreeErrorOf(err); is { // of a session on a host, landed here
		return data, true
	}
	e, is := errors.AsType[*client.Error](err)
	return data, is && json.Unmarshal(e.Data, &data) == nil
}

const discardHelp = `Delete the worktree of a session, such as 12 (duet-rpc prompt --worktree), and its
branch. Without SESSION it is that of the worktree in which this runs, or else the last
one. If work is not landed, this lists it and asks; it is then kept in a git ref first,
from which git branch NAME REF brings it back. Files that git ignores are deleted.

The session stays: prompt --fork continues it in the project's directory.
`

func newDiscard(s *settings) *cobra.Command {
	var yes, force, here bool
	cmd := &cobra.Command{
		Use: "discard [SESSION]", Args: atMost("SESSION"), ValidArgsFunction: completeFirst(s, turnCandidates),
		Short:   "Delete a session's worktree",
		Long:    discardHelp + hubStatusHelp,
		Example: "  duet-rpc discard\n  duet-rpc discard 12 --force",
		RunE: func(cmd *cobra.Command, args []string) error {
			if here {
				return discardFetched(cmd, s, args, force || yes)
			}
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				session, err := worktreeSession(ctx, c, args)
				if err != nil {
					return err
				}
				view := s.newView(cmd.OutOrStdout(), cmd.ErrOrStderr(), s.JSON)
				r, raw, err := s.discard(ctx, c, session, force || yes, func(l protocol.Losses) error {
					if !s.JSON {
						showLosses(view, l)
					}
					again := fmt.Sprintf("duet-rpc discard %d", session.Session)
					return askYes(cmd, s, "Discard the worktree with this work?", "nothing was discarded", again)
				})
				if err != nil {
					return err
				}
				if s.JSON {
					return term.Raw(cmd.OutOrStdout(), raw)
				}
				showDiscarded(view, s.Host, r)
				return nil
			})
		},
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "also discard work that is not landed, without asking")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask, as --force")
	cmd.Flags().BoolVar(&here, "here", false, "of a session on a host that is gone: delete what came here, and ask nothing of the host")
	return cmd
}

// discard deletes a worktree. Unless force is set, ask decides about work that would be lost.
func discard(ctx context.Context, c *client.Client, session protocol.Turn, force bool, ask func(protocol.Losses) error) (protocol.DiscardResult, json.RawMessage, error) {
	params := protocol.DiscardParams{Session: protocol.Ref(session.ID), Force: force}
	r, raw, err := hubclient.SessionDiscard(ctx, c, params)
	data, is := worktreeProblem(err)
	if !is || data.Losses == nil {
		return r, raw, err
	}
	if err := ask(*data.Losses); err != nil {
		return r, raw, err
	}
	params.Force = true
	return hubclient.SessionDiscard(ctx, c, params)
}

func showLosses(view *turn.View, l protocol.Losses) {
	for _, kind := range []struct {
		list *protocol.Listing
		what string
	}{
		{l.Commits, "commit that is not landed"},
		{l.Uncommitted, "changed file that is not committed"},
		{l.Untracked, "new file that is not committed"},
		{l.Nested, "nested repository, which is not kept"},
		{l.Ignored, "ignored file or directory, which is not kept"},
	} {
		showListing(view, kind.what, kind.list)
	}
}

// showListing shows each name of a listing, which may be nil, after what it is.
func showListing(view *turn.View, what string, l *protocol.Listing) {
	if l == nil {
		return
	}
	for _, name := range l.First {
		view.Note(what + ": " + term.Line(name))
	}
	if more := l.Count - len(l.First); more > 0 {
		view.Note(fmt.Sprintf("%s: and %d more", what, more))
	}
}

func showDiscarded(view *turn.View, name string, r protocol.DiscardResult) {
	view.Note("the worktree is discarded")
	if r.Ref != "" {
		view.Note("its work is kept; bring it back with: git branch NAME " + term.Line(r.Ref))
	}
	if r.BranchKept {
		view.Note("its branch stays, because another working tree has it checked out")
	}
	if r.Cleanup != "" {
		view.Note("its cleanup failed: " + term.Line(r.Cleanup))
	}
	showHostLeft(view, name, r)
}

// showHostLeft says what has become of the host that was made for a session.
func showHostLeft(view *turn.View, name string, r protocol.DiscardResult) {
	switch {
	case r.HostError != "":
		view.Note(name + " is still there: " + term.Line(r.HostError))
	case r.Host == protocol.HostRemoved:
		view.Note(name + " is removed")
	case r.Host == protocol.HostKept:
		view.Note(fmt.Sprintf("%s stays for its other sessions; remove it with: duet-rpc hosts stop %s", name, name))
	}
}
