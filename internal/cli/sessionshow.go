package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

const showHelp = `Show a turn and the agent's last message. ID is a turn, such as 12.3, or a session,
such as 12, which means its last turn; without it, the last turn of all.

--transcript shows the session from its beginning to the end of the turn, on a terminal
with $PAGER or less. --diff prints what the turn changed as a unified diff, which git
apply takes in the session's directory. --export prints the transcript for other tools:
md as Markdown with tool calls and diffs, json as docs/export.md describes it.
`

func newShow(s *settings) *cobra.Command {
	var whole, changes bool
	var export string
	cmd := &cobra.Command{
		Use: "show [ID]", Args: atMost("ID"), ValidArgsFunction: completeFirst(s, turnCandidates),
		Short: "Show a session or a turn: its state, its transcript, its changes; export it",
		Long:  showHelp + hubStatusHelp,
		Example: "  duet-rpc session show --transcript\n  duet-rpc session show 12.3 --diff | git apply\n  duet-rpc session show 12 " +
			"--export md > session.md",
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
			err := withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				out, id := cmd.OutOrStdout(), orLast(args)
				switch {
				case export != "":
					return printExport(ctx, c, out, id, export)
				case changes:
					return printDiff(ctx, c, out, id)
				case whole:
					t, err := turn.ReadTranscript(ctx, c, id)
					if err != nil {
						return err
					}
					return term.Page(out, t.Text(s.look(out)))
				}
				x, raw, err := hubclient.Turn(ctx, c, id)
				if err != nil {
					return err
				}
				if s.JSON {
					return term.Raw(out, raw)
				}
				return printSessionList(out, x, !s.NoColor)
			})
			if hubprocess.IsBroken(err) && !s.JSON && !changes && export != "json" {
				return s.showCopy(cmd, orLast(args), err)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&whole, "transcript", false, "the session up to the turn")
	cmd.Flags().BoolVar(&changes, "diff", false, "the turn's changes, as a unified diff")
	cmd.Flags().StringVar(&export, "export", "", "the transcript for other tools, as `md or json`")
	cmd.MarkFlagsMutuallyExclusive("transcript", "diff", "export")
	_ = cmd.RegisterFlagCompletionFunc("export", cobra.FixedCompletions([]string{"md", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// look returns the format of a session on out.
func (s *settings) look(out io.Writer) turn.Look {
	columns, _, _ := term.Size(out)
	return turn.Look{Columns: columns, Color: !s.NoColor && term.Draws(out) && term.ShowsColors()}
}

// printExport prints a session for other tools. On a terminal it escapes third-party text; otherwise it
// leaves it unchanged.
func printExport(ctx context.Context, c *client.Client, out io.Writer, id, format string) error {
	if !term.IsTerminal(out) {
		return hubclient.WriteExport(ctx, c, out, id, protocol.ExportFormat(format))
	}
	var whole strings.Builder
	if err := hubclient.WriteExport(ctx, c, &whole, id, protocol.ExportFormat(format)); err != nil {
		return err
	}
	return printText(out, whole.String())
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

// listOfTurns prints turns, one line each. If there are none, a terminal shows none instead.
func listOfTurns(out io.Writer, turns []protocol.Turn, none string) error {
	return turnTable(out, "TURN", turns, none, func(x protocol.Turn) (id, title string) { return x.Name, x.Called() })
}

// listOfSessions prints sessions by their last turns.
func listOfSessions(out io.Writer, last []protocol.Turn, none string) error {
	return turnTable(out, "SESSION", last, none, func(x protocol.Turn) (id, title string) {
		if strings.Contains(x.Name, "@") { // on a host
			return x.Name, x.SessionTitle
		}
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
		if n := len(x.Background); n > 0 && x.State.Ended() && !listed[x.Session] {
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
	if strings.Contains(x.Name, "@") && !x.State.Ended() {
		return "last seen " + x.State.Words()
	}
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
		{"turn", x.Name},
		{"turn's uuid", x.ID},
		{"session's uuid", x.SessionUUID},
		{"continues", x.Parent},
		{"state", domain.State(x.State).Words()},
		{"gates", x.Gates.Words()},
		{"silence", silence},
		{"in the background", x.BackgroundTitles()},
		{"agent", agentOfSession(x)},
	}
	fields = append(fields, agentFields(x)...)
	fields = append(fields, term.Field{"title", x.Title},
		term.Field{"prompt", x.Prompt}, term.Field{"directory", x.WorkingDir}, term.Field{"worktree", worktreeWords(x.Worktree)},
		term.Field{"created", term.Time(x.CreatedAt)}, term.Field{"ended", term.Time(protocol.Value(x.EndedAt))},
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
	fields := []term.Field{{"mode", mode}, {"sandbox", x.Sandbox}, {"modes", idsOf(protocol.ModeChoices(x.Modes))}, {"model", model}}
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

// agentOfSession returns the agent of a turn, and the agent that continues its session
// if it differs.
func agentOfSession(x protocol.Turn) string {
	if x.RequestedAgent == "" {
		return x.Agent
	}
	return x.Agent + "; the session continues with " + x.RequestedAgent
}
