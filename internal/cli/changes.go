package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

const changesHelp = `List the files that a turn has changed: SESSION is a turn, such as 12.3, or a session,
such as 12, which means its last turn. Without SESSION it is the last one.

--patch shows each change that is not decided and asks whether to keep it, as
git add --patch does: hunks, and a changed executable bit. --accept and --revert decide
about whole files. A file that was changed since is left alone.

Those that an agent's editing tools change are known, and those that its commands
change as well, unless [checkpoints] is disabled in your configuration.
`

func newChanges(s *settings) *cobra.Command {
	var patch bool
	var accept, revert []string
	cmd := &cobra.Command{
		Use: "changes [SESSION]", Args: atMost("SESSION"), ValidArgsFunction: completeFirst(s, turnCandidates),
		Short: "List the files that a turn has changed; keep or undo changes",
		Long:  changesHelp + hubStatusHelp,
		Example: "  duet-rpc changes\n  duet-rpc changes 12.3 --patch\n  duet-rpc changes --revert go.sum\n" +
			"  duet-rpc session show last --diff | git apply --reverse",
		RunE: func(cmd *cobra.Command, args []string) error {
			if patch && (s.JSON || !term.IsTerminal(os.Stdin)) {
				return errors.New("--patch asks on a terminal: use --accept FILE or --revert FILE")
			}
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				session, _, err := hubclient.Turn(ctx, c, orLast(args))
				if err != nil {
					return err
				}
				for _, decided := range []struct {
					decision string
					paths    []string
				}{{"accept", accept}, {"revert", revert}} {
					for _, path := range decided.paths {
						if err := decideFile(ctx, c, session, path, decided.decision); err != nil {
							return err
						}
					}
				}
				if patch {
					return reviewOnTerminal(ctx, cmd, s, c, session)
				}
				files, raw, err := hubclient.ChangeList(ctx, c, protocol.TurnParams{Turn: protocol.Ref(session.ID)})
				switch {
				case err != nil:
					return err
				case s.JSON:
					return term.Raw(cmd.OutOrStdout(), raw)
				}
				return printChanges(files, cmd.OutOrStdout(), cmd.ErrOrStderr(), session)
			})
		},
	}
	cmd.Flags().BoolVarP(&patch, "patch", "p", false, "ask about each change")
	cmd.Flags().StringArrayVar(&accept, "accept", nil, "keep the changes of a `file`")
	cmd.Flags().StringArrayVar(&revert, "revert", nil, "undo the changes of a `file`")
	cmd.MarkFlagsMutuallyExclusive("patch", "accept")
	cmd.MarkFlagsMutuallyExclusive("patch", "revert")
	return cmd
}

// decideFile decides about all changes of a file, which is named by its path in the working
// directory of the session or of this process.
func decideFile(ctx context.Context, c *client.Client, session protocol.Turn, path, decision string) error {
	files, _, err := hubclient.ChangeList(ctx, c, protocol.TurnParams{Turn: protocol.Ref(session.ID)})
	if err != nil {
		return err
	}
	here, _ := filepath.Abs(path) // without a working directory, the session's counts
	there := filepath.Join(session.WorkingDir, path)
	for _, file := range files.Changes {
		if file.Path == path || file.Path == here || file.Path == there {
			return decideChange(ctx, c, decision, protocol.ChangeParams{Turn: protocol.Ref(session.ID), Path: file.Path})
		}
	}
	return fmt.Errorf("%s has not changed %s: `duet-rpc changes %s` lists its files", session.Name, path, session.Name)
}

// decideChange accepts, reverts or reopens a change.
func decideChange(ctx context.Context, c *client.Client, decision string, change protocol.ChangeParams) error {
	_, _, err := hubclient.Call[protocol.DecidedChange](ctx, c, "change."+decision, change)
	return err
}

func printChanges(f protocol.ChangeList, out, side io.Writer, session protocol.Turn) error {
	if len(f.Changes) == 0 {
		return printNoChange(f, side, session)
	}
	t := term.NewTable(out, "FILE", "CHANGE", "STATE")
	for _, file := range f.Changes {
		t.Row(nameIn(session.WorkingDir, file.Path), changeWords(file, session.WorkingDir), file.State)
	}
	return t.Flush()
}

// nameIn returns the path of a file in a directory, relative to it, or else the whole path.
func nameIn(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// printNoChange says that there is no change, and whether that is certain.
func printNoChange(f protocol.ChangeList, out io.Writer, session protocol.Turn) error {
	text := "has changed no file"
	if f.NotRecorded {
		text = "has reported no changed file; what its commands changed is not known, because the files before it are not recorded"
	}
	_, err := fmt.Fprintln(out, term.Lines(out, "— "+term.Line(session.Name)+" "+text))
	return err
}

// changeWords says how a file was changed, such as "new +3". dir is the session's directory.
func changeWords(file *protocol.Change, dir string) string {
	var words []string
	switch {
	case file.Binary:
		words = append(words, "binary")
	case file.Renamed != "":
		words = append(words, "renamed from "+nameIn(dir, file.Renamed))
	case file.Before == nil:
		words = append(words, "new")
	case file.After == nil:
		words = append(words, "deleted")
	}
	if file.Mode != nil {
		words = append(words, "mode "+file.Mode.Old+" → "+file.Mode.New)
	}
	added, removed := 0, 0
	for _, h := range file.Hunks {
		added, removed = added+h.Added, removed+h.Removed
	}
	if added > 0 {
		words = append(words, fmt.Sprintf("+%d", added))
	}
	if removed > 0 {
		words = append(words, fmt.Sprintf("-%d", removed))
	}
	return strings.Join(words, " ")
}

func reviewOnTerminal(ctx context.Context, cmd *cobra.Command, s *settings, c *client.Client, session protocol.Turn) error {
	side := cmd.ErrOrStderr()
	view := s.newView(cmd.OutOrStdout(), side, false)
	typed := bufio.NewReader(cmd.InOrStdin())
	return reviewChanges(ctx, c, view, session, func(context.Context) (string, error) {
		term.DiscardTyped(os.Stdin)
		fmt.Fprint(side, turn.InPrompt(reviewKeys))
		answer, err := typed.ReadString('\n')
		if err != nil {
			fmt.Fprintln(side)
			return "q", nil // C-d
		}
		return strings.TrimSpace(answer), nil
	})
}

// reviewKeys answer the question about a change.
var reviewKeys = []domain.Answer{
	{Key: "y", Name: "accept", Words: "Accept", Meaning: "Keeps the change, and does not ask about it again."},
	{Key: "n", Name: "revert", Words: "Revert", Meaning: "Takes the change back in the file."},
	{Key: "s", Name: "split", Words: "Split", Meaning: "Asks about each change of the hunk alone."},
	{Key: "l", Name: "later", Words: "Later", Meaning: "Leaves the change open, and shows the next."},
	{Key: "q", Name: "quit", Words: "Quit", Meaning: "Leaves the changes that are open."},
	{Key: "?", Name: "keys", Words: "Keys", Meaning: "Shows what the keys do."},
}

// reviewed says what a decision has done to a change.
var reviewed = map[string]string{"accept": "Accepted", "revert": "Reverted"}

// reviewChanges shows each change of a session that is not decided and asks about it.
func reviewChanges(ctx context.Context, c *client.Client, view *turn.View, session protocol.Turn, ask func(context.Context) (string, error)) error {
	files, _, err := hubclient.ChangeList(ctx, c, protocol.TurnParams{Turn: protocol.Ref(session.ID)})
	if err != nil {
		return err
	}
	open := 0
	for _, file := range files.Changes {
		for parts := partsOf(file); len(parts) > 0; {
			part := parts[0]
			parts = parts[1:]
			if part.state != "open" {
				continue
			}
			open++
			view.ShowDiff(part.text)
			decision, err := decide(ctx, view, part, ask)
			switch {
			case decision == "" || err != nil:
				return err
			case decision == "split":
				parts = append(slices.Clone(part.changes), parts...)
				continue
			case decision == "later":
				continue
			}
			if err := decideChange(ctx, c, decision, protocol.ChangeParams{Turn: protocol.Ref(session.ID), Path: file.Path, Hunk: part.id}); err != nil {
				view.Note(turn.InDialogue(err).Error())
				continue
			}
			done := reviewed[decision]
			if part.id != "" && file.Before != nil && file.After != nil {
				done += " in"
			}
			view.Note(term.Line(done + " " + nameIn(session.WorkingDir, file.Path)))
		}
	}
	if open == 0 {
		view.Note("no change of the last turn is open")
	}
	return nil
}

// decide asks what becomes of a part of a change; "" ends the review.
func decide(ctx context.Context, view *turn.View, of part, ask func(context.Context) (string, error)) (string, error) {
	for {
		answer, err := ask(ctx)
		if err != nil {
			return "", err
		}
		word := strings.ToLower(answer)
		i := slices.IndexFunc(reviewKeys, func(k domain.Answer) bool { return word == k.Key || word == k.Name })
		switch {
		case word == "", i >= 0 && reviewKeys[i].Name == "quit":
			return "", nil
		case i >= 0 && reviewKeys[i].Name == "split" && len(of.changes) == 0:
			view.Note("this is one change: there is nothing to split")
			continue
		case i >= 0 && reviewKeys[i].Name != "keys":
			return reviewKeys[i].Name, nil
		}
		view.Explain(reviewKeys)
	}
}

// A part of a change is decided about at once. Its id is "" for a whole file.
type part struct {
	id, text, state string
	changes         []part // of a hunk that has several
}

// partsOf splits the change of a file into its hunks, each below the names of the file, and the
// change of its mode. A file without hunks is one part.
func partsOf(file *protocol.Change) (list []part) {
	text := file.Diff
	content := "\n--- "
	if file.Binary {
		content = "\nBinary file "
	}
	if at := strings.Index("\n"+text, content); file.Mode != nil && at >= 0 {
		list = append(list, part{id: file.Mode.ID, text: text[:at], state: file.Mode.State})
		text = text[at:]
	}
	names, rest, found := strings.Cut(text, "\n@@ ")
	hunks := strings.Split(rest, "\n@@ ")
	switch {
	case file.Binary:
		return append(list, part{text: text, state: file.State})
	case !found || len(hunks) > len(file.Hunks): // the hunks did not fit into the answer
		return []part{{text: file.Diff, state: file.State}}
	}
	for i, hunk := range hunks {
		h := file.Hunks[i]
		one := part{h.ID, names + "\n@@ " + strings.TrimSuffix(hunk, "\n") + "\n", h.State, changesOf(h, names, hunk)}
		if slices.ContainsFunc(one.changes, func(c part) bool { return c.state != h.State }) { // some are decided
			list = append(list, one.changes...)
		} else {
			list = append(list, one)
		}
	}
	return list
}

// changesOf splits the text of a hunk into its changes, each with the unchanged lines around it. A change may
// have unchanged lines within.
func changesOf(h protocol.Hunk, names, text string) (changes []part) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")[1:]
	at := 0
	unchanged := func() (from int) {
		for from = at; at < len(lines) && strings.HasPrefix(lines[at], " "); at++ {
		}
		return from
	}
	before := unchanged()
	old, now := h.OldStart, h.NewStart // of the first line of what is shown
	for _, c := range h.Parts {
		from, above := before, at-before
		at += lengthOf(c, lines[at:])
		before = unchanged()
		below := at - before
		header := fmt.Sprintf("@@ -%d,%d +%d,%d @@", old, above+c.OldLines+below, now, above+c.NewLines+below)
		changes = append(changes, part{id: c.ID, text: names + "\n" + header + "\n" + strings.Join(lines[from:at], "\n") + "\n", state: c.State})
		old, now = old+above+c.OldLines, now+above+c.NewLines
	}
	return changes
}

// lengthOf returns how many of a hunk's lines belong to the change with which they begin.
func lengthOf(c protocol.HunkPart, lines []string) (n int) {
	old, now := 0, 0
	for n < len(lines) && (old < c.OldLines || now < c.NewLines || strings.HasPrefix(lines[n], `\`)) {
		switch {
		case strings.HasPrefix(lines[n], "-"):
			old++
		case strings.HasPrefix(lines[n], "+"):
			now++
		case strings.HasPrefix(lines[n], " "):
			old, now = old+1, now+1
		}
		n++
	}
	return n
}
