package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// Commands that find, show and archive sessions.

// changeSession calls a method for the session that id names, and prints its new state. params returns
// the method's parameters for the session's own id: by then, an id such as last may name another one.
func changeSession(cmd *cobra.Command, s *settings, id, method string, params func(session string) any, now string) error {
	x, err := findSession(cmd, s, id)
	if err != nil {
		return err
	}
	return askHub(cmd, s, method, params(x.ID), func(json.RawMessage) error {
		progress(cmd, s, "session %d %s", x.Session, now)
		return nil
	})
}

// archived returns the parameters that archive a session or restore it.
func archived(is bool) func(session string) any {
	return func(session string) any {
		return protocol.ArchiveSessionsParams{Sessions: []protocol.Ref{protocol.Ref(session)}, Archived: &is}
	}
}

func newArchive(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "archive ID", Args: exactly("ID"), ValidArgsFunction: completeFirst(s, turnCandidates),
		Short: "Archive a session",
		Long: "Archive a session: then only session list --archived lists it. It comes back when it\nis continued. One whose agent works in " +
			"the background is refused.\n" + hubStatusHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeSession(cmd, s, args[0], "session.archive", archived(true), "is archived; session unarchive restores it")
		},
	}
}

func newUnarchive(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "unarchive ID", Args: exactly("ID"), ValidArgsFunction: completeFirst(s, turnCandidates),
		Short: "Restore a session from the archive",
		Long:  "Restore a session from the archive.\n" + hubStatusHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeSession(cmd, s, args[0], "session.archive", archived(false), "is listed again")
		},
	}
}

func newRename(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "rename ID TITLE...", Args: atLeast("ID", "TITLE"), ValidArgsFunction: completeFirst(s, turnCandidates),
		Short: "Give a session a title",
		Long:  "Give a session a title.\n" + hubStatusHelp, Example: "  duet-rpc session rename last The parser",
		RunE: func(cmd *cobra.Command, args []string) error {
			title := joined(args[1:])
			return changeSession(cmd, s, args[0], "session.rename", func(session string) any {
				return protocol.RenameSessionParams{Session: protocol.Ref(session), Title: title}
			}, "is called "+title)
		},
	}
}

func newDelete(s *settings) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete ID", Args: exactly("ID"), ValidArgsFunction: completeFirst(s, turnCandidates),
		Short: "Delete a session for good",
		Long: "Delete a session with all that only it has: messages, tool calls, attachments,\n" +
			"questions, rules and the former contents of files. Files of the project stay as they\nare. Interrupt a session that works first, " +
			"also in the background. Turns that have\n" +
			"forks stay in the archive. The session's worktree is deleted, too; if it has work\nthat is not landed, nothing is " +
			"deleted.\n" + hubStatusHelp,
		Example: "  duet-rpc session delete 12",
		RunE: func(cmd *cobra.Command, args []string) error {
			x, err := findSession(cmd, s, args[0])
			if err != nil {
				return err
			}
			if !yes {
				question := fmt.Sprintf("Delete session %d (%s) for good?", x.Session, term.Short(x.Called()))
				if err := askYes(
					cmd, s, question, fmt.Sprintf("session %d was not deleted", x.Session), fmt.Sprintf("duet-rpc session delete %d", x.Session),
				); err != nil {
					return err
				}
			}
			return askHub(cmd, s, "session.delete", protocol.SessionRefParams{Session: protocol.Ref(x.ID)}, func(r protocol.DeleteSessionResult) error {
				text := term.Count(r.Deleted, "turn") + " deleted"
				if r.Kept > 0 {
					text += "; " + term.Count(r.Kept, "turn") + " kept in the archive, because other sessions were forked from there"
				}
				if r.Worktree != "" {
					text += "; its worktree stays: " + r.Worktree
				}
				progress(cmd, s, "%s", text)
				return nil
			})
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	addNativeDelete(cmd, s)
	return cmd
}

// offered is how many sessions pick offers.
const offered = 500

func newPick(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "pick", Args: exactly(),
		Short: "Choose a session with a few typed letters, and print its number",
		Long: "Choose a session on the terminal, and print its number. Letters that you type narrow\n" +
			"the list, the arrows or C-n and C-p move in it, RET chooses, ESC or C-c cancels.\n" + hubStatusHelp,
		Example: "  duet-rpc prompt --continue \"$(duet-rpc session pick)\" \"And now fix it\"",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !term.IsTerminal(os.Stdin) || !term.IsTerminal(os.Stderr) {
				return errors.New("there is no terminal to choose on; session list lists the sessions")
			}
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				task, err := pickSession(ctx, c, s.newView(cmd.OutOrStdout(), cmd.ErrOrStderr(), false), nil)
				switch {
				case err != nil:
					return err
				case task == "":
					return errors.New("nothing was chosen")
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), term.Line(task))
				return err
			})
		},
	}
}

// pickSession lets the user choose a session on the terminal, and returns its number; "" if they
// chose none.
func pickSession(ctx context.Context, c *client.Client, view *turn.View, signals <-chan os.Signal) (number string, err error) {
	sessions, _, err := hubclient.Sessions(ctx, c, protocol.SessionListParams{Filter: "normal", Limit: new(uint(offered))})
	if err != nil {
		return "", err
	}
	if len(sessions) == 0 {
		return "", errors.New("there is no session yet; `duet-rpc` begins one")
	}
	n, err := view.Pick(ctx, signals, offeredLines(sessions))
	if n < 0 || err != nil {
		return "", err
	}
	return strconv.FormatInt(sessions[n].Session, 10), nil
}

// offeredLines returns a line for each session, in columns.
func offeredLines(list []protocol.Turn) (lines []string) {
	var number, status int
	for _, s := range list {
		number, status = max(number, len(strconv.FormatInt(s.Session, 10))), max(status, len(domain.State(s.State).Words()))
	}
	for _, s := range list {
		lines = append(lines, fmt.Sprintf("%-*d  %-3s  %-*s  %s", number, s.Session, term.Age(s.ActiveAt), status, domain.State(s.State).Words(),
			term.Line(s.SessionTitle)))
	}
	return lines
}

func newQueue(s *settings) *cobra.Command {
	var edit, before string
	var last bool
	cmd := &cobra.Command{
		Use: "queue ID", Args: exactly("ID"), ValidArgsFunction: completeFirst(s, turnCandidates),
		Short: "Show the prompts that wait in a session, edit or move one",
		Long: "Show the prompts that wait in a session, such as 12, the next one first. With a flag,\n" +
			"change the one that ID names, such as 12.3. session interrupt 12.3 takes it back.\n" + hubStatusHelp,
		Example: "  duet-rpc session queue last\n  duet-rpc session queue 12.3 --edit \"Use the other file\"\n  duet-rpc session queue 12.4 " +
			"--before 12.3",
		RunE: func(cmd *cobra.Command, args []string) error {
			x, err := findSession(cmd, s, args[0])
			if err != nil {
				return err
			}
			method, params := "session.get", any(protocol.SessionRefParams{Session: protocol.Ref(x.Name)})
			flags := cmd.Flags()
			switch {
			case flags.Changed("edit"):
				method, params = "turn.edit", protocol.EditTurnParams{Turn: protocol.Ref(x.Name), Prompt: edit}
			case flags.Changed("before"):
				next, err := findSession(cmd, s, before)
				if err != nil {
					return err
				}
				method, params = "turn.move", protocol.MoveTurnParams{Turn: protocol.Ref(x.Name), Before: protocol.Ref(next.Name)}
			case last:
				method, params = "turn.move", protocol.MoveTurnParams{Turn: protocol.Ref(x.Name)}
			}
			return askHub(cmd, s, method, params, func(r protocol.QueuedTurns) error {
				t := term.NewTable(cmd.OutOrStdout(), "TURN", "AGE", "PROMPT")
				t.Empty(fmt.Sprintf("no prompt waits in session %d", x.Session))
				for _, p := range r.Queued {
					t.Row(p.Turn, term.Age(p.CreatedAt), term.Short(p.Prompt))
				}
				return t.Flush()
			})
		},
	}
	cmd.Flags().StringVar(&edit, "edit", "", "change the prompt to `TEXT`")
	cmd.Flags().StringVar(&before, "before", "", "run the prompt before the prompt of `ID`")
	cmd.Flags().BoolVar(&last, "last", false, "have the prompt run after all others")
	_ = cmd.RegisterFlagCompletionFunc("before", completeFirst(s, turnCandidates))
	cmd.MarkFlagsMutuallyExclusive("edit", "before", "last")
	return cmd
}

// newSearch returns the search command.
func newSearch(s *settings) *cobra.Command {
	var limit uint
	cmd := &cobra.Command{
		Use: "search WORDS...", Args: atLeast("WORDS"),
		Short: "Search the messages and tool calls of all sessions",
		Long: "Search the messages and tool calls of all sessions of the project. A hit has all\nwords; the last may be the beginning of " +
			"one. The best hits come first. Those in the\ntranscripts of sessions on hosts, as they came here last, come behind them.\n" + hubStatusHelp,
		Example: "  duet-rpc search parser tests",
		RunE: func(cmd *cobra.Command, args []string) error {
			away := s.searchCopies(args)
			err := withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				r, raw, err := hubclient.Call[protocol.SearchResult](ctx, c, "session.search",
					protocol.SearchParams{Query: joined(args), Limit: &limit})
				if err != nil {
					return err
				}
				if s.JSON {
					return term.Raw(cmd.OutOrStdout(), raw)
				}
				hits := append(r.Hits, away...)
				if len(hits) == 0 {
					return fmt.Errorf("nothing was found for %q: one message must have all words; fewer words find more", joined(args))
				}
				return printHits(cmd, hits)
			})
			if errors.Is(err, project.ErrNoDatabase) && len(away) > 0 && !s.JSON {
				return printHits(cmd, away)
			}
			return err
		},
	}
	cmd.Flags().UintVar(&limit, "limit", 20, "at most `N`, up to 200")
	return cmd
}

// beforeMatch is how many characters are shown before the first match. It is small, so that
// the match is visible on a narrow terminal.
const beforeMatch = 16

// aroundMatch shortens a snippet to begin shortly before the first match.
func aroundMatch(snippet string) string {
	at := strings.Index(snippet, "«")
	if at <= 0 || utf8.RuneCountInString(snippet[:at]) <= beforeMatch {
		return snippet
	}
	words := []rune(snippet[:at])
	before := string(words[len(words)-beforeMatch:])
	if _, rest, cut := strings.Cut(before, " "); cut && rest != "" {
		before = rest
	}
	return "…" + before + snippet[at:]
}

// shortTitle shortens a session's title beside other columns.
func shortTitle(title string) string {
	const most = 24
	if words := []rune(term.Short(title)); len(words) > most {
		return string(words[:most-1]) + "…"
	}
	return term.Short(title)
}

func printHits(cmd *cobra.Command, hits []*protocol.SearchHit) error {
	t := term.NewTable(cmd.OutOrStdout(), "TURN", "AGE", "BY", "TITLE", "FOUND")
	t.Spare("BY", "AGE")
	t.Below("TITLE", "FOUND")
	for _, h := range hits {
		t.Row(h.Turn, term.Age(h.CreatedAt), cmp.Or(h.ToolName, h.Role, string(h.Type)), shortTitle(h.Title), aroundMatch(h.Snippet))
	}
	return t.Flush()
}

// Printing of a session, a list of sessions, and an agent's settings.

// noSession explains an empty list of sessions and what to do.
func noSession(status, agent string, archived bool) string {
	switch which := asked(status, agent); {
	case archived:
		return "no session is archived" + which + ": `duet-rpc session archive ID` archives one"
	case which != "":
		return "there is no session" + which + ": `duet-rpc session list` lists them all"
	}
	return "there is no session here yet, or all are archived: `duet-rpc prompt \"…\"` begins one"
}

// asked describes the filter.
func asked(state, agent string) string {
	var parts []string
	if state != "" {
		parts = append(parts, " in the state \""+domain.State(state).Words()+"\"")
	}
	if agent != "" {
		parts = append(parts, " of "+agent)
	}
	return strings.Join(parts, "")
}

const sessionHelp = `A session is a conversation with an agent, and a turn is one prompt and the work on it.
ID is the number of a session, such as 12, or of a turn, such as 12.3: the third turn of
session 12. Where a turn is meant, 12 is the last turn of session 12. last is the turn
that was started last, or its session. A uuid of either works as well.
`

func newSessionCommand(s *settings) *cobra.Command {
	return commandGroup("session", "List, show, set, interrupt and archive sessions", sessionHelp+hubStatusHelp,
		newSessionListCommand(s), newSessionInterruptCommand(s), newSessionSetCommand(s), newSessionCommandsCommand(s),
		newSessionAttachmentCommand(s), newAdopt(s), newShow(s), newPick(s), newQueue(s), newArchive(s), newUnarchive(s),
		newRename(s), newDelete(s))
}

// listedStates are the states by which lists select turns, in the words of the shell, and those of the hub.
var listedStates = []struct {
	word   string
	states []domain.State
}{
	{"draft", []domain.State{domain.Draft}},
	{"queued", []domain.State{domain.Queued}},
	{"starting", []domain.State{domain.Starting}},
	{"running", []domain.State{domain.Running}},
	{"waiting", []domain.State{domain.WaitingInput}},
	{"interrupting", []domain.State{domain.Interrupting}},
	{"completed", []domain.State{domain.Completed}},
	{"failed", []domain.State{domain.Failed, domain.TimedOut}},
	{"interrupted", []domain.State{domain.Interrupted, domain.Cancelled}},
	{"discarded", []domain.State{domain.Discarded}},
}

// A stateFlag is the flag --state.
type stateFlag struct{ word string }

// Add adds the flag to a command.
func (f *stateFlag) Add(cmd *cobra.Command) {
	var words []string
	for _, s := range listedStates {
		words = append(words, s.word)
	}
	oneOf(cmd, &f.word, "state", "only turns in this state", words...)
}

// States returns the states that the flag selects; nil: all.
func (f *stateFlag) States() ([]domain.State, error) {
	var words []string
	for _, s := range listedStates {
		if s.word == f.word {
			return s.states, nil
		}
		words = append(words, s.word)
	}
	if f.word == "" {
		return nil, nil
	}
	return nil, fmt.Errorf("--state: expected one of %s, received %q", strings.Join(words, ", "), f.word)
}

func newSessionListCommand(s *settings) *cobra.Command {
	var turns bool
	var state stateFlag
	filter := map[bool]protocol.LeafFilter{false: "normal", true: "archived"}
	var p protocol.ListTurnsParams
	var archived bool
	var limit uint
	complete := func() (err error) {
		p.Limit, p.Archived = &limit, &archived
		p.States, err = state.States()
		return err
	}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List sessions, the newest first",
		Long: "List sessions, the newest first: each by its last turn, or by the one that works or\nwaits for you, and by the first words of " +
			"its first prompt. --turns, --state and --agent\nlist every turn.\n" + hubStatusHelp,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := complete(); err != nil {
				return err
			}
			none := noSession(state.word, p.Agent, archived)
			if turns || state.word != "" || p.Agent != "" {
				return askHub(cmd, s, "turn.list", p, func(r struct{ Turns []protocol.Turn }) error {
					return listOfTurns(cmd.OutOrStdout(), r.Turns, none)
				})
			}
			var away []protocol.Turn
			if !archived {
				away = s.awaySessions()
			}
			err := withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				sessions, raw, err := hubclient.Sessions(ctx, c, protocol.SessionListParams{Filter: filter[archived], Limit: &limit})
				switch {
				case err != nil:
					return err
				case s.JSON:
					return term.Raw(cmd.OutOrStdout(), raw)
				}
				if err := atWork(ctx, c, sessions); err != nil {
					return err
				}
				return listOfSessions(cmd.OutOrStdout(), withAway(sessions, away), none)
			})
			if errors.Is(err, project.ErrNoDatabase) && len(away) > 0 && !s.JSON {
				return listOfSessions(cmd.OutOrStdout(), withAway(nil, away), none)
			}
			return err
		},
	}
	state.Add(cmd)
	agentFlag(cmd, s, &p.Agent, "only turns of this agent")
	cmd.Flags().UintVar(&limit, "limit", 20, "at most `N`, up to 1000")
	cmd.Flags().BoolVar(&turns, "turns", false, "list every turn, not only the last of each session")
	cmd.Flags().BoolVar(&archived, "archived", false, "only archived sessions")
	addAllProjects(cmd, s, func() (protocol.ListTurnsParams, error) { err := complete(); return p, err }, &limit)
	addNativeList(cmd, s, &p.Agent, &limit)
	cmd.MarkFlagsMutuallyExclusive("native", allProjects)
	return cmd
}

// withAway adds sessions on hosts to a list, the newest first.
func withAway(sessions, away []protocol.Turn) []protocol.Turn {
	if len(away) == 0 {
		return sessions
	}
	sessions = append(sessions, away...)
	slices.SortStableFunc(sessions, func(a, b protocol.Turn) int { return b.ActiveAt.Compare(a.ActiveAt) })
	return sessions
}

// atWork replaces the last turns of sessions by those that work or wait for an answer, if these are
// earlier ones: prompts behind them may be queued or cancelled.
func atWork(ctx context.Context, c *client.Client, last []protocol.Turn) error {
	turns, _, err := hubclient.Turns(ctx, c,
		protocol.ListTurnsParams{States: []domain.State{domain.Running, domain.WaitingInput}, Limit: new(uint(1000))})
	if err != nil {
		return err
	}
	for _, working := range turns {
		for i, x := range last {
			if x.Session == working.Session {
				working.SessionTitle = x.SessionTitle
				last[i] = working
			}
		}
	}
	return nil
}

// findSession finds a session by any of its ids.
func findSession(cmd *cobra.Command, s *settings, id string) (found protocol.Turn, err error) {
	err = withHub(cmd, s, func(ctx context.Context, c *client.Client) (err error) {
		found, _, err = hubclient.Turn(ctx, c, id)
		return err
	})
	return found, err
}

func newSessionAttachmentCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "attachment ID", Args: exactly("ID"),
		Short: "Write an image, a sound or a file of a session to standard output",
		Long:  "Write an image, a sound or a file of a session to a file: > FILE.\n" + hubStatusHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.JSON {
				return askHub(cmd, s, "attachment.get", protocol.AttachmentParams{ID: args[0]}, func(any) error { return nil })
			}
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				return turn.SaveAttachment(ctx, c, cmd.OutOrStdout(), args[0])
			})
		},
	}
}

func newSessionCommandsCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:               "commands ID",
		Short:             "List the slash commands of a session's agent",
		Long:              "List the slash commands that the agent of a session has reported. A prompt may\nbegin with one.\n" + hubStatusHelp,
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, turnCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			return askHub(cmd, s, "turn.get", protocol.TurnParams{Turn: protocol.Ref(args[0])}, func(r protocol.TurnResult) error {
				return sessionCommands(cmd.OutOrStdout(), r.Turn)
			})
		},
	}
}
