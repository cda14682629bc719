package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

const rewindHelp = `Restore the files that a turn and the later ones of its session have changed to their
state before that turn. TURN is a turn, such as 12.3, or a session, such as 12, which
means its last turn; without it, the last turn of all. It lists the files and asks first.

A file that was edited since, or that the session has not changed, stays as it is,
unless you give --all. --undo takes the last rewind to before the turn back, then the
one before it.

The files are recorded before each turn, unless [checkpoints] is disabled in your
configuration or git is missing. The session stays as it is: prompt --fork continues it
from an earlier turn.
`

func newRewind(s *settings) *cobra.Command {
	var yes, undo, dryRun bool
	var params protocol.RewindParams
	cmd := &cobra.Command{
		Use: "rewind [TURN]", Args: atMost("TURN"), ValidArgsFunction: completeFirst(s, turnCandidates),
		Short: "Restore the files to their state before a turn",
		Long:  rewindHelp + hubStatusHelp,
		Example: "  duet-rpc rewind\n  duet-rpc rewind 12.3 --all --yes\n" +
			"  duet-rpc rewind 12.3 --undo",
		RunE: func(cmd *cobra.Command, args []string) error {
			id := orLast(args)
			params.Turn, params.Undo = protocol.Ref(id), undo
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				session, _, err := hubclient.Turn(ctx, c, id)
				if err != nil {
					return err
				}
				var r protocol.RewindResult
				var raw []byte
				if !undo {
					preview := params
					preview.Preview = true
					if r, raw, err = hubclient.SessionRewind(ctx, c, preview); err != nil {
						return err
					}
					if !r.Checkpoint {
						return errors.New(notRecorded(session))
					}
				}
				view := s.newView(cmd.OutOrStdout(), cmd.ErrOrStderr(), false)
				restored := restoredBy(r)
				if !undo && !s.JSON {
					showRewind(view, session, r)
				}
				if !dryRun && (undo || restored > 0) {
					if !undo && !yes {
						again := "duet-rpc rewind " + id
						if err := askYes(cmd, s, rewindQuestion(restored), "no file was restored", again); err != nil {
							return err
						}
					}
					if r, raw, err = hubclient.SessionRewind(ctx, c, params); err != nil {
						return err
					}
				}
				if s.JSON {
					return term.Raw(cmd.OutOrStdout(), raw)
				}
				if !dryRun {
					showRewound(view, session, r, undo)
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&params.All, "all", false, "also restore files that others have changed since")
	f.BoolVarP(&yes, "yes", "y", false, "do not ask")
	f.BoolVarP(&dryRun, "dry-run", "n", false, "only list the files")
	f.BoolVar(&undo, "undo", false, "take the last rewind to before the turn back")
	for _, other := range []string{"all", "yes", "dry-run"} {
		cmd.MarkFlagsMutuallyExclusive("undo", other)
	}
	return cmd
}

func notRecorded(session protocol.Turn) string {
	return "the files before " + session.Name + " are not recorded, or no longer (checkpoints need git, and can be disabled in your " +
		"configuration)"
}

func restoredBy(r protocol.RewindResult) (n int) {
	for _, file := range r.Files {
		if file.Left == "" {
			n++
		}
	}
	return n
}

func rewindQuestion(n int) string { return "Restore " + term.Count(n, "file") + "?" }

// showRewind lists the files that rewinding to before a session restores and leaves.
func showRewind(view *turn.View, session protocol.Turn, r protocol.RewindResult) {
	if len(r.Files) == 0 {
		view.Note("the files are as before " + session.Name)
	}
	for _, file := range r.Files {
		view.Note(strings.TrimRight(fmt.Sprintf("%s %s %s", rewindWords(file), term.Line(nameIn(session.WorkingDir, file.Path)), linesOf(file)), " "))
	}
	if r.More > 0 {
		view.Note("and " + term.Count(r.More, "more file"))
	}
	shown := r.NotRecorded[:min(len(r.NotRecorded), shownNotRecorded)]
	for _, file := range shown {
		name := nameIn(session.WorkingDir, file.Path)
		if file.Reason == "untracked" {
			name = "all files that git does not track"
		}
		view.Note("not recorded, and so stays: " + term.Line(name) + notRecordedBecause(file.Reason))
	}
	if more := len(r.NotRecorded) - len(shown) + r.MoreNotRecorded; more > 0 {
		view.Note("and " + term.Count(more, "more file") + " that are not recorded")
	}
}

const shownNotRecorded = 5 // files

func notRecordedBecause(reason string) string {
	switch reason {
	case "too-large":
		return " (over 10 MB)"
	case "nested-repository":
		return " (a nested repository)"
	case "unreadable":
		return " (it cannot be read)"
	case "untracked":
		return " (there are too many)"
	case "changed":
		return " (it was changed while files were first recorded)"
	}
	return ""
}

func rewindWords(file protocol.RewindFile) string {
	switch {
	case file.Left == "edited":
		return "stays, edited since:"
	case file.Left == "other":
		return "stays, changed by others:"
	case file.Left != "":
		return "cannot be restored (" + term.Line(file.Detail) + "):"
	case file.Change == "deleted":
		return "deletes"
	}
	return "restores"
}

func linesOf(file protocol.RewindFile) string {
	switch {
	case file.Left != "":
		return ""
	case file.Change == "mode":
		return "(executable bit)"
	case file.Added == 0 && file.Removed == 0:
		return ""
	}
	return fmt.Sprintf("+%d -%d", file.Added, file.Removed)
}

// showRewound says what a rewind, or its undoing, has done.
func showRewound(view *turn.View, session protocol.Turn, r protocol.RewindResult, undone bool) {
	for _, file := range r.Files {
		if file.Left == "busy" || undone && file.Left != "" {
			showRewind(view, session, protocol.RewindResult{Files: []protocol.RewindFile{file}})
		}
	}
	n := restoredBy(r)
	switch {
	case undone:
		view.Note("the rewind is undone: " + term.Count(n, "file") + " restored")
		return
	case n > 0:
		view.Note(term.Count(n, "file") + " restored; take it back with: duet-rpc rewind " + session.Name + " --undo")
	}
	if r.ForkTurn != "" {
		view.Note("continue the session from there with: duet-rpc prompt --fork " + r.ForkTurn + " TEXT")
	}
}
