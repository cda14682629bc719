package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
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
		Long:  "Archive a session: then only session list --archived lists it. It comes back when it\nis continued. One whose agent works in the background is refused.\n" + hubStatusHelp,
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
			"questions, rules and the former contents of files. Files of the project stay as they\nare. Interrupt a session that works first, also in the background. Turns that have\n" +
			"forks stay in the archive. The session's worktree is deleted, too; if it has work\nthat is not landed, nothing is deleted.\n" + hubStatusHelp,
		Example: "  duet-rpc session delete 12",
		RunE: func(cmd *cobra.Command, args []string) error {
			x, err := findSession(cmd, s, args[0])
			if err != nil {
				return err
			}
			if !yes {
				question := fmt.Sprintf("Delete session %d (%s) for good?", x.Session, term.Short(x.Called()))
				if err := askYes(cmd, s, question, fmt.Sprintf("session %d was not deleted", x.Session), fmt.Sprintf("duet-rpc session delete %d", x.Session)); err != nil {
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
				task, err := pickConversation(ctx, c)
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

// pickConversation lets the user choose a conversation on the terminal, and returns the id of its
// last task; "" if they chose none.
func pickConversation(ctx context.Context, c *client.Client) (task string, err error) {
	sessions, _, err := hubclient.Sessions(ctx, c, protocol.SessionListParams{Filter: "normal", Limit: new(uint(offered))})
	if err != nil {
		return "", err
	}
	if len(sessions) == 0 {
		return "", errors.New("there is no session yet; `duet-rpc` begins one")
	}
	n, err := term.Pick(ctx, os.Stdin, os.Stderr, offeredLines(sessions))
	if n < 0 || err != nil {
		return "", err
	}
	return strconv.FormatInt(sessions[n].Session, 10), nil
}

// offeredLines returns a line for each conversation, in columns.
func offeredLines(list []protocol.Turn) (lines []string) {
	var number, status int
	for _, s := range list {
		number, status = max(number, len(strconv.FormatInt(s.Session, 10))), max(status, len(domain.State(s.State).Words()))
	}
	for _, s := range list {
		lines = append(lines, fmt.Sprintf("%-*d  %-3s  %-*s  %s", number, s.Session, term.Age(s.ActiveAt), status, domain.State(s.State).Words(), term.Line(s.SessionTitle)))
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
		Example: "  duet-rpc session queue last\n  duet-rpc session queue 12.3 --edit \"Use the other file\"\n  duet-rpc session queue 12.4 --before 12.3",
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
		Short:   "Search the messages and tool calls of all sessions",
		Long:    "Search the messages and tool calls of all sessions of the project. A hit has all\nwords; the last may be the beginning of one. The best hits come first.\n" + hubStatusHelp,
		Example: "  duet-rpc search parser tests",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				r, raw, err := hubclient.Call[protocol.SearchResult](ctx, c, "session.search", protocol.SearchParams{Query: joined(args), Limit: &limit})
				if err != nil {
					return err
				}
				if s.JSON {
					return term.Raw(cmd.OutOrStdout(), raw)
				}
				if len(r.Hits) == 0 {
					return fmt.Errorf("nothing was found for %q: one message must have all words; fewer words find more", joined(args))
				}
				return printHits(cmd, r.Hits)
			})
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

func printHits(cmd *cobra.Command, hits []*protocol.SearchHit) error {
	t := term.NewTable(cmd.OutOrStdout(), "TURN", "AGE", "BY", "FOUND")
	t.Spare("BY", "AGE")
	for _, h := range hits {
		t.Row(h.Turn, term.Age(h.CreatedAt), cmp.Or(h.ToolName, h.Role, h.Type), aroundMatch(h.Snippet))
	}
	return t.Flush()
}

const showHelp = `Show a turn and the agent's last message. ID is a turn, such as 12.3, or a session,
such as 12, which means its last turn.

--transcript shows the session from its beginning to the end of the turn, on a terminal
with $PAGER or less. --diff prints what the turn changed as a unified diff, which git
apply takes in the session's directory. --export prints the transcript for other tools:
md as Markdown with tool calls and diffs, json as docs/export.md describes it.
`

func newShow(s *settings) *cobra.Command {
	var whole, changes bool
	var export string
	cmd := &cobra.Command{
		Use: "show ID", Args: exactly("ID"), ValidArgsFunction: completeFirst(s, turnCandidates),
		Short:   "Show a session or a turn: its state, its transcript, its changes; export it",
		Long:    showHelp + hubStatusHelp,
		Example: "  duet-rpc session show last --transcript\n  duet-rpc session show 12.3 --diff | git apply\n  duet-rpc session show 12 --export md > session.md",
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("export") && export != "md" && export != "json" {
				return fmt.Errorf("--export takes md or json, got %q", export)
			}
			switch {
			case !s.JSON || export == "json":
			case export != "":
				return errors.New("--json and --export md cannot be given together; --export json prints the transcript as JSON")
			case whole:
				return errors.New("--json and --transcript cannot be given together; --export json prints the transcript as JSON")
			case changes:
				return errors.New("--json and --diff cannot be given together; `duet-rpc changes --json` prints the changes as JSON")
			}
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				out := cmd.OutOrStdout()
				switch {
				case export != "":
					return printExport(ctx, c, out, args[0], export)
				case changes:
					return printDiff(ctx, c, out, args[0])
				case whole:
					t, err := turn.ReadConversation(ctx, c, args[0])
					if err != nil {
						return err
					}
					return term.Page(out, t.Text(s.look(out)))
				}
				x, raw, err := hubclient.Turn(ctx, c, args[0])
				if err != nil {
					return err
				}
				if s.JSON {
					return term.Raw(out, raw)
				}
				return printSessionList(out, x, !s.NoColor)
			})
		},
	}
	cmd.Flags().BoolVar(&whole, "transcript", false, "the session up to the turn")
	cmd.Flags().BoolVar(&changes, "diff", false, "the turn's changes, as a unified diff")
	cmd.Flags().StringVar(&export, "export", "", "the transcript for other tools, as `md or json`")
	cmd.MarkFlagsMutuallyExclusive("transcript", "diff", "export")
	_ = cmd.RegisterFlagCompletionFunc("export", cobra.FixedCompletions([]string{"md", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// look returns the format of a conversation on out.
func (s *settings) look(out io.Writer) turn.Look {
	columns, _, _ := term.Size(out)
	return turn.Look{Columns: columns, Color: !s.NoColor && term.Draws(out) && term.ShowsColors()}
}

// printExport prints a conversation for other tools. On a terminal it escapes third-party
// text; otherwise it leaves it unchanged.
func printExport(ctx context.Context, c *client.Client, out io.Writer, id, format string) error {
	t, err := turn.ReadConversation(ctx, c, id)
	if err != nil {
		return err
	}
	text := t.Markdown()
	if format == "json" {
		raw, err := t.JSON()
		if err != nil {
			return err
		}
		text = term.Inert(raw) + "\n"
	}
	return printText(out, text)
}

func printDiff(ctx context.Context, c *client.Client, out io.Writer, id string) error {
	s, _, err := hubclient.Turn(ctx, c, id)
	if err != nil {
		return err
	}
	files, _, err := hubclient.ChangeList(ctx, c, protocol.TurnParams{Turn: protocol.Ref(s.ID)})
	if err != nil {
		return err
	}
	if files.Diff == "" && term.IsTerminal(out) {
		return printNoChange(files, out, s)
	}
	return printText(out, files.Diff)
}

func printText(out io.Writer, text string) error {
	if term.IsTerminal(out) {
		return term.Page(out, term.Exact(text))
	}
	_, err := io.WriteString(out, text)
	return err
}

func joined(words []string) string { return strings.Join(words, " ") }

// Printing of a session, a list of sessions, and an agent's settings.

// listOfTurns prints turns, one line each. If there are none, a terminal shows none instead.
func listOfTurns(out io.Writer, turns []protocol.Turn, none string) error {
	return turnTable(out, "TURN", turns, none, func(x protocol.Turn) (id, title string) { return x.Name, x.Called() })
}

// listOfSessions prints sessions by their last turns.
func listOfSessions(out io.Writer, last []protocol.Turn, none string) error {
	return turnTable(out, "SESSION", last, none, func(x protocol.Turn) (id, title string) {
		return strconv.FormatInt(x.Session, 10), x.SessionTitle
	})
}

// turnTable prints turns with their id and title in the table.
func turnTable(out io.Writer, id string, turns []protocol.Turn, none string, called func(protocol.Turn) (id, title string)) error {
	t := term.NewTable(out, id, "STATE", "AGENT", "ACTIVE", "TITLE")
	t.Spare("AGENT")
	t.Empty(none)
	listed := make(map[int64]bool) // sessions with a listed turn
	for _, x := range turns {
		id, title := called(x)
		title = term.Short(title)
		if n := len(x.Background); n > 0 && hubclient.Ended(x.State) && !listed[x.Session] {
			title = term.Cut(title, besideBackground) + " — works in the background: " + term.Count(n, "task")
		}
		listed[x.Session] = true
		t.Row(id, sessionStatus(x), x.Agent, term.Age(x.ActiveAt), title)
	}
	return t.Flush()
}

// besideBackground is the width of a title when a column shows the agent's background work.
const besideBackground = 30

// sessionStatus returns a session's status, and whether its agent is silent.
func sessionStatus(x protocol.Turn) string {
	if x.SilentSince == nil {
		return x.StateInWords()
	}
	return domain.State(x.State).Words() + ", silent for " + term.Age(*x.SilentSince)
}

// sessionCommands prints the slash commands of a session's agent, one line each.
func sessionCommands(out io.Writer, x protocol.Turn) error {
	t := term.NewTable(out, "COMMAND", "INPUT", "DESCRIPTION")
	t.Empty("its agent has reported no slash commands, or has not run yet")
	for _, c := range x.Reported().Commands {
		t.Row("/"+c.Name, term.Short(c.InputHint), term.Short(c.Description))
	}
	return t.Flush()
}

// printSessionList prints a session and the agent's last message. It renders Markdown if color
// is set and out is a terminal.
func printSessionList(out io.Writer, x protocol.Turn, color bool) error {
	took, tokens, cost, silence, stop := "", "", "", "", x.StopReason
	if stop == "cancelled" { // the agent's word for an interrupted turn
		stop = ""
	}
	if ms := x.DurationMS; ms != nil {
		took = term.Duration(time.Duration(*ms) * time.Millisecond)
	}
	if x.SilentSince != nil {
		silence = term.Silence(x.Agent, *x.SilentSince, x.SilentTool, x.SilentNote)
	}
	if total := protocol.Value(x.TotalTokens); total > 0 {
		tokens = term.Number(int(total))
	}
	if usd := protocol.Value(x.CostUSD); usd > 0 {
		cost = domain.Dollars(usd)
	}
	fields := []term.Field{
		{"turn", x.Name}, {"turn's uuid", x.ID}, {"session's uuid", x.SessionUUID}, {"continues", x.Parent}, {"state", domain.State(x.State).Words()}, {"gates", x.Gates.Words()}, {"silence", silence}, {"in the background", x.BackgroundTitles()}, {"agent", agentOfSession(x)},
	}
	fields = append(fields, agentFields(x)...)
	fields = append(fields, term.Field{"title", x.Title},
		term.Field{"prompt", x.Prompt}, term.Field{"directory", x.WorkingDir}, term.Field{"worktree", worktreeWords(x.Worktree)}, term.Field{"created", term.Time(x.CreatedAt)}, term.Field{"ended", term.Time(protocol.Value(x.EndedAt))},
		term.Field{"stop reason", stop}, term.Field{"error", x.Error}, term.Field{"error code", x.ErrorCode},
		term.Field{"agent's session", x.AgentSessionID}, term.Field{"time", took}, term.Field{"tokens", tokens}, term.Field{"cost", cost})
	err := term.Fields(out, fields...)
	if x.Result != "" {
		term.Body(out, x.Result, color)
	}
	return err
}

// agentFields returns the settings of a session's agent and the possible values.
func agentFields(x protocol.Turn) []term.Field {
	reported := x.Reported()
	mode, model := x.Mode, x.Model
	if x.AgentMode != "" && x.AgentMode != x.Mode && x.RequestedAgent == "" {
		mode += ", the agent is in " + x.AgentMode
	}
	if x.RequestedMode != "" {
		mode += ", requested: " + x.RequestedMode
	}
	if x.RequestedModel != "" {
		model += ", requested: " + x.RequestedModel
	} else if model != "" && reported.Agent != nil && (reported.Model == nil || reported.Model.Current == "" && len(reported.Model.Choices) == 0) {
		model += ", requested; the agent does not report its models"
	}
	fields := []term.Field{{"mode", mode}, {"modes", idsOf(protocol.ModeChoices(x.Modes))}, {"model", model}}
	if reported.Model != nil {
		fields = append(fields, term.Field{"models", idsOf(reported.Model.Choices)})
	}
	for _, o := range reported.Options {
		if o.Category != "mode" && o.Category != "model" {
			text := o.Current
			if len(o.Choices) > 0 {
				text += " (" + idsOf(o.Choices) + ")"
			}
			fields = append(fields, term.Field{"option " + o.ID, strings.TrimSpace(text)})
		}
	}
	var names []string
	for _, c := range reported.Commands {
		names = append(names, "/"+c.Name)
	}
	fields = append(fields, term.Field{"commands", strings.Join(names, " ")})
	if a := reported.Agent; a != nil {
		fields = append(fields, term.Field{"agent's program", strings.TrimSpace(fmt.Sprintf("%s %s", a.Name, a.Version))})
	}
	if i := reported.Info; i != nil {
		fields = append(fields, term.Field{"agent's title", i.Title})
	}
	return fields
}

func idsOf(choices []domain.Choice) string {
	var ids []string
	for _, c := range choices {
		ids = append(ids, c.ID)
	}
	return strings.Join(ids, ", ")
}

// worktreeWords describes the worktree of a session, if it has one.
func worktreeWords(w *protocol.WorktreeState) string {
	switch {
	case w == nil:
		return ""
	case w.Gone:
		return "gone"
	}
	return "on the branch " + w.Branch
}

// agentOfSession returns the agent of a session, and the agent that continues its conversation
// if it differs.
func agentOfSession(x protocol.Turn) string {
	if x.RequestedAgent == "" {
		return x.Agent
	}
	return x.Agent + "; the session continues with " + x.RequestedAgent
}

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

// noTask explains an empty list of tasks and what to do.
func noTask(state, agent string) string {
	if which := asked(state, agent); which != "" {
		return "there is no turn" + which + ": `duet-rpc session list --turns` lists them all"
	}
	return "there is no turn here yet: `duet-rpc prompt \"…\"` begins one"
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
	return commandGroup("session", "List, show, start, continue and archive sessions", sessionHelp+hubStatusHelp,
		newSessionListCommand(s), newSessionLaunchCommand(s), newSessionContinueCommand(s),
		newSessionForkCommand(s), newSessionInterruptCommand(s), newSessionSetCommand(s), newSessionCommandsCommand(s),
		newSessionAttachmentCommand(s), newAdopt(s), newShow(s), newPick(s), newQueue(s), newArchive(s), newUnarchive(s),
		newRename(s), newDelete(s))
}

// listedStates are the states by which lists select turns, in the words of the shell, and those of the hub.
var listedStates = []struct {
	word   string
	states []protocol.TurnState
}{
	{"draft", []protocol.TurnState{hubclient.Draft}},
	{"queued", []protocol.TurnState{hubclient.Queued}},
	{"starting", []protocol.TurnState{hubclient.Starting}},
	{"running", []protocol.TurnState{hubclient.Running}},
	{"waiting", []protocol.TurnState{hubclient.WaitingInput}},
	{"interrupting", []protocol.TurnState{"interrupting"}},
	{"completed", []protocol.TurnState{hubclient.Completed}},
	{"failed", []protocol.TurnState{hubclient.Failed, hubclient.TimedOut}},
	{"interrupted", []protocol.TurnState{hubclient.Interrupted, hubclient.Cancelled}},
	{"discarded", []protocol.TurnState{hubclient.Discarded}},
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
func (f *stateFlag) States() ([]protocol.TurnState, error) {
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
		Long:  "List sessions, the newest first: each by its last turn, or by the one that works or\nwaits for you, and by the first words of its first prompt. --turns, --state and --agent\nlist every turn.\n" + hubStatusHelp,
		Args:  noArguments,
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
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
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
				return listOfSessions(cmd.OutOrStdout(), sessions, none)
			})
		},
	}
	state.Add(cmd)
	agentFlag(cmd, s, &p.Agent, "only turns of this agent")
	cmd.Flags().UintVar(&limit, "limit", 20, "at most `N`, up to 1000")
	cmd.Flags().BoolVar(&turns, "turns", false, "list every turn, not only the last of each session")
	cmd.Flags().BoolVar(&archived, "archived", false, "only archived sessions")
	addAllProjects(cmd, s, func() (protocol.ListTurnsParams, error) { err := complete(); return p, err }, &limit)
	addNativeList(cmd, s, &p.Agent, &limit)
	cmd.MarkFlagsMutuallyExclusive("native", "all-projects")
	return cmd
}

// atWork replaces the last turns of sessions by those that work or wait for an answer, if these are
// earlier ones: prompts behind them may be queued or cancelled.
func atWork(ctx context.Context, c *client.Client, last []protocol.Turn) error {
	turns, _, err := hubclient.Turns(ctx, c, protocol.ListTurnsParams{States: []protocol.TurnState{hubclient.Running, hubclient.WaitingInput}, Limit: new(uint(1000))})
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

func newSessionLaunchCommand(s *settings) *cobra.Command {
	return newStartingCommand(s, "session launch", "Start a session, and print its turn")
}

// newStartingCommand returns a command that starts a session. path is the command without the program.
func newStartingCommand(s *settings, path, short string) *cobra.Command {
	var agent, cwd, title string
	var dirs []string
	var priority int
	var gates gateFlags
	var a agentSettings
	var with turn.AttachFlags
	var wait bool
	var worktree *bool
	cmd := &cobra.Command{
		Use:         path[strings.LastIndexByte(path, ' ')+1:] + " [TEXT...]",
		Annotations: begins(),
		Short:       short,
		Long: "Start a session, or queue it if no slot is free, and print the number of its turn, such\n" +
			"as 12.1. The prompt is the arguments, or standard input if there are none. With\n" +
			"--gate COMMAND the agent continues until the command succeeds (docs/gates.md).\n\n" + turn.Help + hubStatusHelp,
		Example: fmt.Sprintf("  duet-rpc %[1]s \"Say hello\"\n  duet-rpc %[1]s --agent claude --wait \"Why does the build fail?\"", path),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			query, err := readPromptText(cmd.InOrStdin(), args)
			if err != nil {
				return err
			}
			if err = with.Read(cmd, s, args); err != nil {
				return err
			}
			if cwd, err = fullPath(cwd); err != nil {
				return err
			}
			if dirs, err = fullDirectories(dirs); err != nil {
				return err
			}
			options, err := agentOptionsValue(a.options)
			if err != nil {
				return err
			}
			if err := gates.Check(); err != nil {
				return err
			}
			return startWork(cmd, s, hubclient.SessionStart, protocol.StartParams{
				Prompt: query, Title: title, Agent: agent, WorkingDir: cwd, Mode: a.mode, Model: a.model, Options: options, Worktree: worktree,
				Priority: priority, Gated: gates.Gated(),
				AgentSettings: protocol.AgentSettings{AdditionalDirectories: dirs}, PromptContent: with.Content(),
			}, wait)
		},
	}
	agentFlag(cmd, s, &agent, "the agent to run (default: the configured one)")
	cmd.Flags().StringVar(&cwd, "cwd", "", "the directory in which the agent works (default: the project's root)")
	cmd.Flags().StringVar(&title, "title", "", "a title for it")
	worktreeFlag(cmd, &worktree)
	a.addFlags(cmd, s, knownByFlag)
	with.Add(cmd)
	directories(cmd, "cwd", "add-dir")
	cmd.Flags().StringArrayVar(&dirs, "add-dir", nil, "another directory that the agent may use; may be given several times")
	cmd.Flags().IntVar(&priority, "priority", 0, "of prompts that wait, the highest priority starts first")
	gates.Add(cmd)
	waitFlag(cmd, &wait)
	return cmd
}

func newSessionContinueCommand(s *settings) *cobra.Command {
	return newContinuingCommand(s, "continue ID [TEXT...]", "Continue a session with another prompt",
		"Continue a session, such as 12, with another prompt. A turn, such as 12.3, that is not\n"+
			"the last one and has ended is continued in a fork, which begins after it. The prompt\nis the other arguments, or standard input if there are none.\n", false)
}

func newSessionForkCommand(s *settings) *cobra.Command {
	return newContinuingCommand(s, "fork ID [TEXT...]", "Start another session that begins with the turns of one",
		"Start another session that begins with everything said up to the end of a turn. The\n"+
			"session of that turn stays as it is. The prompt is the other arguments, or standard\ninput if there are none.\n", true)
}

// newContinuingCommand returns a command that continues a session, or forks its conversation.
func newContinuingCommand(s *settings, use, title, help string, fork bool) *cobra.Command {
	var with turn.AttachFlags
	var wait, steer bool
	var agent string
	var a agentSettings
	cmd := &cobra.Command{
		Use: use, Short: title, Long: help + hubStatusHelp, Annotations: begins(),
		Args:              atLeast("ID"),
		ValidArgsFunction: completeFirst(s, turnCandidates),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			query, err := readPromptText(cmd.InOrStdin(), args[1:])
			if err != nil {
				return err
			}
			if err = with.Read(cmd, s, args[1:]); err != nil {
				return err
			}
			options, err := agentOptionsValue(a.options)
			if err != nil {
				return err
			}
			next := protocol.NextTurn{PromptContent: with.Content()}
			if fork {
				return startWork(cmd, s, hubclient.SessionFork, protocol.ForkParams{
					Turn: protocol.Ref(args[0]), Prompt: query, Agent: agent, Mode: a.mode, Model: a.model, Options: options, NextTurn: next,
				}, wait)
			}
			params := protocol.PromptParams{Session: protocol.Ref(args[0]), Prompt: &query, NextTurn: next}
			if steer {
				params.Deliver = "steer"
			}
			return startWork(cmd, s, hubclient.SessionPrompt, params, wait)
		},
	}
	with.Add(cmd)
	waitFlag(cmd, &wait)
	if fork {
		agentFlag(cmd, s, &agent, "the agent that continues it (default: the same)")
		a.addFlags(cmd, s, knownByID)
	} else {
		cmd.Flags().BoolVar(&steer, "steer", false, "send it to the agent while it works, if the agent supports that; else it is the next prompt after the turn")
	}
	return cmd
}

func newSessionInterruptCommand(s *settings) *cobra.Command {
	var background, reason string
	cmd := &cobra.Command{
		Use:               "interrupt ID",
		Short:             "Interrupt a session, or take back a queued prompt",
		Long:              "Interrupt the turn at work in a session, such as 12, even one that waits for an answer;\nor a turn, such as 12.3, also a queued one. It may take a moment to end, and the\nsession can be continued. If the turn has ended, this ends its agent's background work.\n--background TASK stops one background task, if the agent supports that.\n" + hubStatusHelp,
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, turnCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			params := protocol.InterruptTurnParams{Turn: protocol.Ref(args[0]), Reason: reason, Background: background}
			return askHub(cmd, s, "turn.interrupt", params, func(r protocol.InterruptTurnResult) error {
				switch {
				case background != "":
					progress(cmd, s, "the background task %s ends", background)
				case r.State == hubclient.Completed:
					progress(cmd, s, "%s is completed; its agent's background work ends", r.Turn)
				default:
					progress(cmd, s, "%s is %s", r.Turn, domain.State(r.State).Words())
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	cmd.Flags().StringVar(&background, "background", "", "stop this background `TASK` alone: its id, as session show --json has it")
	return cmd
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

const sessionSetHelp = `Set the agent of a session to a mode, a model, or values of its own options;
"duet-rpc session show" lists those that it has. An agent that works takes them at
once, or refuses them, and then nothing is changed; any other gets them with the
next prompt. An option without a value is no longer requested.

With --agent another agent continues the session with the next prompt: it gets what
was said so far, and none of the rights of the previous agent.
`

func newSessionSetCommand(s *settings) *cobra.Command {
	var a agentSettings
	var agent string
	cmd := &cobra.Command{
		Use:               "set ID",
		Short:             "Set a session's agent to a mode, a model or an option, or choose another agent",
		Long:              sessionSetHelp + hubStatusHelp,
		Example:           "  duet-rpc session set 12 --mode plan\n  duet-rpc session set 12 --agent codex\n  duet-rpc session set 12 --model opus --option thinking=high",
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, turnCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.isEmpty() && agent == "" {
				return errors.New("say what to set: --agent, --mode, --model or --option")
			}
			params, err := a.params(args[0])
			if err != nil {
				return err
			}
			params.Agent = ifGiven(agent)
			return askHub(cmd, s, "session.set", params, func(r protocol.SetSessionResult) error {
				when := "from the next prompt on"
				if r.Live {
					when = "now"
				}
				progress(cmd, s, "session %d is set %s", r.Turn.Session, when)
				return nil
			})
		},
	}
	agentFlag(cmd, s, &agent, "continue the session with the agent `NAME`")
	a.addFlags(cmd, s, knownByID)
	return cmd
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
