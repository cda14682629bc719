package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

const approvalsHelp = `Answer the questions that agents ask: whether a tool may run, or anything else. A
question stays open until a client answers it; the first answer counts.

On a terminal you are asked the open questions, the oldest first, and then each new
one: one key answers it, l leaves it for later, q or C-c ends. Elsewhere, and with --list, they
are listed.

An id may be shortened if no other open question begins the same. With --all-projects
the questions of all your projects count, on this machine and on your hosts; the commands
that answer have the flag, too.
`

func newApprovalsCommand(s *settings) *cobra.Command {
	var wait, list, once, everywhere bool
	var session string
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "List and answer the questions of agents",
		Long:  approvalsHelp + hubStatusHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if term.IsTerminal(os.Stdin) && term.IsTerminal(cmd.OutOrStdout()) && !s.JSON && !wait && !list {
				review := reviewApprovals
				if everywhere {
					review = reviewEverywhere
				}
				return turn.InWords(review(cmd, s, turn.InboxOptions{Session: session, Once: once}))
			}
			if everywhere {
				return questionsEverywhere(cmd, s)
			}
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				if wait {
					if err := turn.AwaitQuestion(ctx, c, session); err != nil {
						return err
					}
				}
				open, raw, err := hubclient.OpenApprovals(ctx, c, session)
				if err != nil {
					return err
				}
				if s.JSON {
					return term.Raw(cmd.OutOrStdout(), raw)
				}
				if len(open) == 0 {
					progress(cmd, s, "no question is open: no agent waits for an answer; `duet-rpc approvals --wait` waits for the next")
				} else if term.IsTerminal(cmd.OutOrStdout()) {
					progress(cmd, s, "answer one with: duet-rpc approvals allow ID, deny ID or respond ID")
				}
				t := term.NewTable(cmd.OutOrStdout(), "ID", "TURN", "AGENT", "AGE", "ASKS")
				t.Spare("AGENT")
				for _, a := range open {
					t.Row(turn.UniqueID(a.ApprovalID, open), a.Turn, a.Agent, term.Age(a.CreatedAt), term.Short(turn.Asks(a)))
				}
				return t.Flush()
			})
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until there is a question, and list it")
	cmd.Flags().BoolVar(&list, "list", false, "list them on a terminal, too")
	cmd.Flags().BoolVar(&once, "once", false, "on a terminal: go through the questions that are open, and end")
	cmd.Flags().StringVar(&session, "session", "", "only questions of this session, such as 12, or of this turn, such as 12.3")
	_ = cmd.RegisterFlagCompletionFunc("session", completeAll(s, turnCandidates))
	cmd.Flags().BoolVar(&everywhere, allProjects, false, "the questions of all projects, on this machine and on your hosts")
	cmd.MarkFlagsMutuallyExclusive(allProjects, "session")
	cmd.MarkFlagsMutuallyExclusive(allProjects, "wait")
	cmd.AddCommand(anywhere(newApprovalsShowCommand(s), s), anywhere(newApproveCommand(s), s), anywhere(newDenyCommand(s), s),
		anywhere(newRespondCommand(s), s), newRulesCommand(s), newForgetCommand(s))
	return cmd
}

// allProjects is the flag for the projects of this machine and of all hosts.
const allProjects = "all-projects"

// anywhere adds --all-projects to a command whose first argument is a question.
func anywhere(cmd *cobra.Command, s *settings) *cobra.Command {
	var everywhere bool
	cmd.Flags().BoolVar(&everywhere, allProjects, false, "find the question in any project, on this machine and on your hosts")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if everywhere {
			ctx, stop := term.UntilInterrupted(cmd.Context())
			defer stop()
			if err := s.goToQuestion(ctx, args[0]); err != nil {
				return err
			}
		}
		return run(cmd, args)
	}
	return cmd
}

// reviewApprovals asks the open questions on the terminal, one by one.
func reviewApprovals(cmd *cobra.Command, s *settings, o turn.InboxOptions) error {
	signals, stop := term.Interrupts()
	defer stop()
	o.Signals = signals
	return withClient(cmd.Context(), &s.Settings, false, func(ctx context.Context, c *client.Client) error {
		_, err := turn.Inbox(ctx, c, s.newView(cmd.OutOrStdout(), cmd.ErrOrStderr(), false), o)
		return err
	})
}

func newApprovalsShowCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a whole question: the tool's input, the diff, the options",
		Long: "Show a whole question: the tool's input, what it would change, and the options; on\n" +
			"a terminal with $PAGER or less.\n" + hubStatusHelp,
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, approvalCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				a, raw, err := turn.FindApproval(ctx, c, args[0])
				if err != nil {
					return err
				}
				out := cmd.OutOrStdout()
				if s.JSON {
					return term.Raw(out, raw)
				}
				stale := ""
				if a.Stale {
					stale = "the agent that asked is gone; approving continues its session"
				}
				deadline := ""
				if a.Deadline != nil {
					deadline = a.Deadline.Format(time.RFC3339Nano)
				}
				fields := []term.Field{
					{"question", a.ApprovalID},
					{"turn", a.Turn},
					{"agent", a.Agent},
					{"status", a.Status.Words()},
					{"asks", a.Asks()},
					{"subject", a.Subject},
					{"stale", stale},
					{"asked", a.CreatedAt.Format(time.RFC3339Nano)},
					{"deadline", deadline},
					{"decided by", a.DecidedBy},
					{"because", a.Explanation},
				}
				for _, scope := range domain.RuleScopes() {
					fields = append(fields, term.Field{"rule, " + scope, a.Rules[scope].Text})
				}
				fields = append(fields, term.Field{"comment", a.Comment}, term.Field{"response", a.Response})
				for i, o := range a.Options {
					fields = append(fields, term.Field{"option " + strconv.Itoa(i+1), o.String()})
				}
				text := &strings.Builder{}
				_ = term.Fields(text, fields...)                    // a Builder cannot fail
				session, _, _ := hubclient.Turn(ctx, c, a.TurnUUID) // without the session, paths stay absolute
				for i, line := range turn.Sheet(a, session.WorkingDir).Details() {
					if i == 0 {
						text.WriteString("\n")
					}
					text.WriteString(line.Text + "\n")
				}
				return term.Page(out, text.String())
			})
		},
	}
}

// answerApproval answers the question with the given id. decide makes the decision.
func answerApproval(cmd *cobra.Command, s *settings, id string, decide func(hubclient.Approval) (protocol.DecisionParams, error)) error {
	err := connected(cmd, s, func(ctx context.Context, c *client.Client) error {
		a, _, err := turn.FindApproval(ctx, c, id)
		if err != nil {
			return err
		}
		d, err := decide(a)
		if err != nil {
			return err
		}
		d.ApprovalID = a.ApprovalID
		return sendDecision(ctx, cmd, s, c, d)
	})
	return turn.InWords(err)
}

// answerFlags adds the flags for answers to questions about tools.
func answerFlags(cmd *cobra.Command, d *protocol.DecisionParams, option *string) {
	oneOf(cmd, (*string)(&d.Scope), "scope", "how long the answer holds", domain.Scopes()...)
	cmd.Flags().StringVar(&d.Pattern, "pattern", "", "with --scope: the pattern of the rule, instead of the one that approvals show prints")
	cmd.Flags().StringVar(option, "option", "", "the agent's own answer, by its number, id or name")
	cmd.Flags().BoolVar(&d.Tell, "tell", false, "send the agent the reason, with its next prompt if it accepts none with the answer")
}

func newApproveCommand(s *settings) *cobra.Command {
	d := protocol.DecisionParams{Decision: protocol.Approve}
	var input, option string
	cmd := &cobra.Command{
		Use:     "allow ID",
		Aliases: []string{"approve"},
		Short:   "Allow an agent's request",
		Long: "Allow an agent's request: once, or from now on with --scope. With --edit-input the\n" +
			"tool runs with another input.\n\n" +
			"approvals show lists the agent's own answers, and what a rule would allow.\n" + hubStatusHelp,
		Example: "  duet-rpc approvals allow 7787605b\n  duet-rpc approvals allow 7787605b --scope session\n" +
			"  duet-rpc approvals allow 7787605b --scope project --pattern 'git log *'\n  duet-rpc approvals allow 7787605b --option 2",
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, approvalCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("edit-input") {
				if !json.Valid([]byte(input)) || !strings.HasPrefix(strings.TrimSpace(input), "{") {
					return errors.New("--edit-input must be a JSON object")
				}
				d.UpdatedInput = json.RawMessage(input)
			}
			return answerApproval(cmd, s, args[0], func(a hubclient.Approval) (protocol.DecisionParams, error) {
				return turn.WithOption(
					d, a, option,
				)
			})
		},
	}
	cmd.Flags().StringVar(&input, "edit-input", "", "another input for the tool, a JSON object")
	cmd.Flags().StringVar(&d.Comment, "comment", "", "why, for the record")
	answerFlags(cmd, &d, &option)
	return cmd
}

func newDenyCommand(s *settings) *cobra.Command {
	d := protocol.DecisionParams{Decision: protocol.Deny}
	var option string
	cmd := &cobra.Command{
		Use:   "deny ID [REASON...]",
		Short: "Deny an agent's request",
		Long: "Deny an agent's request. Most agents cannot receive the reason; with --tell it is\nsent as their next " +
			"prompt.\n" + hubStatusHelp,
		Example:           "  duet-rpc approvals deny 7787605b\n  duet-rpc approvals deny 7787605b --tell use a branch",
		Args:              atLeast("ID"),
		ValidArgsFunction: completeFirst(s, approvalCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			if d.Comment = strings.Join(args[1:], " "); d.Comment == "" && d.Tell {
				return errors.New("--tell needs a reason: write it after the id")
			}
			d.Comment = cmp.Or(d.Comment, "denied") // the hub requires a reason
			return answerApproval(cmd, s, args[0], func(a hubclient.Approval) (protocol.DecisionParams, error) {
				return turn.WithOption(
					d, a, option,
				)
			})
		},
	}
	answerFlags(cmd, &d, &option)
	return cmd
}

// response is an answer to a question that is not about a tool.
type response struct {
	words           []string
	fields          []string // NAME=VALUE, of a form
	decline, cancel bool
}

func newRespondCommand(s *settings) *cobra.Command {
	var r response
	cmd := &cobra.Command{
		Use:   "respond ID [TEXT...]",
		Short: "Answer a question that is not about a tool",
		Long: "Answer a question that is not about a tool: with one of its options, by its name\n" +
			"or its number in approvals show, or in your own words. Some agents accept only\n" +
			"their own options; --decline chooses none of them.\n\n" +
			"A form takes a --field for each field; a field without one keeps the agent's\n" +
			"value. For an address, yes says that you open it: nothing opens it for you.\n" +
			"--decline declines both, --cancel leaves them without an answer.\n" + hubStatusHelp,
		Example: "  duet-rpc approvals respond 7787605b 2\n" +
			"  duet-rpc approvals respond 7787605b --field port=8080 --field log=yes",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(r.fields) > 0 || r.decline || r.cancel {
				return exactly("ID")(cmd, args)
			}
			return atLeast("ID")(cmd, args)
		},
		ValidArgsFunction: completeFirst(s, approvalCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.words = args[1:]
			return answerApproval(cmd, s, args[0], r.decision)
		},
	}
	cmd.Flags().StringArrayVar(&r.fields, "field", nil, "a value of a form, as `NAME=VALUE`; may be given several times")
	cmd.Flags().BoolVar(&r.decline, "decline", false, "decline a form or an address, or choose none of the options")
	cmd.Flags().BoolVar(&r.cancel, "cancel", false, "leave a form or an address without an answer")
	cmd.MarkFlagsMutuallyExclusive("field", "decline", "cancel")
	_ = cmd.RegisterFlagCompletionFunc("field", cobra.NoFileCompletions)
	return cmd
}

// decision turns the response into a decision on question a.
func (r response) decision(a hubclient.Approval) (protocol.DecisionParams, error) {
	words := strings.Join(r.words, " ")
	switch {
	case r.decline:
		return protocol.DecisionParams{Decision: protocol.Deny, Comment: "declined"}, nil
	case r.cancel:
		return protocol.DecisionParams{Decision: protocol.Cancel}, nil
	case a.Mode == domain.ElicitForm && words == "":
		content, err := turn.FormValues(a, r.fields)
		return protocol.DecisionParams{Decision: protocol.Respond, Content: content}, err
	case len(r.fields) > 0:
		return protocol.DecisionParams{}, errors.New("--field is for a form, and this question has none")
	case words == "":
		return protocol.DecisionParams{}, errors.New("\"duet-rpc approvals respond\" needs TEXT")
	case a.Mode == domain.ElicitURL && words != "yes":
		return protocol.DecisionParams{}, fmt.Errorf("this asks whether you open %s: type yes, or use --decline or --cancel", term.Line(a.URL))
	}
	d := protocol.DecisionParams{Decision: protocol.Respond, Comment: words}
	for i, o := range a.Options {
		if d.Comment == strconv.Itoa(i+1) || d.Comment == o.ID || strings.EqualFold(d.Comment, o.Name) {
			d.Option, d.Comment = o.ID, o.Name
			break
		}
	}
	return d, nil
}

// Structured output: with a JSON Schema the agent's last message must be JSON that fits it.

// answerSchema is a JSON Schema that the agent's answer must fit.
type answerSchema struct {
	raw      json.RawMessage
	resolved *jsonschema.Resolved
}

// readAnswer reads a JSON Schema from a file. It refuses references to other files.
func readAnswer(file string) (*answerSchema, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var schema jsonschema.Schema
	var wrong *json.UnmarshalTypeError
	if err := json.Unmarshal(raw, &schema); errors.As(err, &wrong) {
		return nil, fmt.Errorf("%s is not a JSON Schema: it is a JSON %s, and must be an object", file, wrong.Value)
	} else if err != nil {
		return nil, fmt.Errorf("%s is not a JSON Schema: %w", file, err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("%s is not a JSON Schema: %w", file, err)
	}
	return &answerSchema{raw, resolved}, nil
}

// Asking returns the prompt with the schema appended. Agents have no other way to receive a
// schema.
func (s *answerSchema) Asking(prompt string) string {
	return prompt + "\n\nYour last message must be JSON alone, without a code fence or any other words, and valid under this JSON " +
		"Schema:\n" + string(s.raw)
}

// Again returns a prompt that asks for another answer after one that does not fit.
func (s *answerSchema) Again(why error) string {
	return s.Asking("Your last message cannot be used: " + why.Error() + ". Give the same answer again as it was asked for.")
}

// Check returns the JSON of a message if it fits the schema, without a code fence around it.
func (s *answerSchema) Check(message string) (string, error) {
	text := unfenced(strings.TrimSpace(message))
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		if text == "" {
			err = errors.New("it is empty")
		}
		return "", fmt.Errorf("it is not JSON: %w", err)
	}
	if err := s.resolved.Validate(value); err != nil {
		return "", fmt.Errorf("it does not fit the schema: %w", err)
	}
	return text, nil
}

// unfenced returns the content of a code fence that encloses the whole text, or else the text.
func unfenced(text string) string {
	first, rest, ok := strings.Cut(text, "\n")
	if ok && strings.HasPrefix(first, "```") && strings.HasSuffix(rest, "```") && strings.Count(rest, "```") == 1 {
		return strings.TrimSpace(strings.TrimSuffix(rest, "```"))
	}
	return text
}

// decisionFlags say which schema the last message must fit and which file it goes to.
type decisionFlags struct {
	schemaFile, file string

	schema *answerSchema // nil: any message fits
	text   string        // the message, or its JSON
}

// Add adds the flags to a command.
func (f *decisionFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.schemaFile, "output-schema", "", "require a last message that fits the JSON Schema in `FILE`")
	cmd.Flags().StringVarP(&f.file, "output-last-message", "o", "", "write the last message to `FILE`")
}

// Asking reads the schema, if the flags name one, and returns the prompt that asks for JSON
// that fits it.
func (f *decisionFlags) Asking(prompt string) (_ string, err error) {
	if f.schemaFile == "" {
		return prompt, nil
	}
	if f.schema, err = readAnswer(f.schemaFile); err != nil {
		return "", fmt.Errorf("--output-schema: %w", err)
	}
	return f.schema.Asking(prompt), nil
}

// Take stores the last message of a session, or returns why it does not fit.
func (f *decisionFlags) Take(s protocol.Turn) (err error) {
	f.text = ""
	if s.Result != "" {
		f.text = s.Result
	}
	if f.schema != nil {
		f.text, err = f.schema.Check(f.text)
	}
	return err
}

// Write writes the message to the file, if the flags name one.
func (f *decisionFlags) Write() error {
	if f.file == "" {
		return nil
	}
	text := strings.TrimRight(f.text, "\n")
	if text != "" {
		text += "\n"
	}
	return os.WriteFile(f.file, []byte(text), 0o666) // the umask applies, as it does to a shell redirection
}

func newRulesCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "rules",
		Short: "List the rules that answers with --scope have made",
		Long:  "List the rules that answers with --scope have made. Agents do not ask for what a rule\nallows.\n" + hubStatusHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return askHub(cmd, s, "rule.list", struct{}{}, func(r struct{ Rules []protocol.Rule }) error {
				t := term.NewTable(cmd.OutOrStdout(), "ID", "RULE", "FOR", "WHERE", "AGE")
				t.Below("FOR", "WHERE")
				t.Empty("there is no rule yet: an answer with --scope makes one, such as `duet-rpc approvals allow ID --scope session`")
				for _, rule := range r.Rules {
					t.Row(strconv.FormatInt(rule.RuleID, 10), rule.Effect, term.Short(rule.Subject()), term.Short(rule.Where()), term.Age(rule.CreatedAt))
				}
				return t.Flush()
			})
		},
	}
}

func newForgetCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "forget ID",
		Short:   "Delete a rule, so that questions are asked again",
		Long:    "Delete a rule that an answer with --scope has made, so that questions are asked\nagain.\n" + hubStatusHelp,
		Example: "  duet-rpc approvals forget 3",
		Args:    exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return fmt.Errorf("%q is not the number of a rule; `duet-rpc approvals rules` lists them", args[0])
			}
			return askHub(cmd, s, "rule.delete", map[string]int64{"rule_id": id}, func(struct{}) error { return nil })
		},
	}
}

// Commands with which a script asks the user and waits for the answer.

// denied is the exit status when the user denies.
const denied = 3

const statusHelp = `
Every editor and duet-rpc approvals show the question. It is withdrawn when this
command ends. A daemon is started if none runs.

Exit status: 0 if it was answered or allowed; 3 if it was denied; 1 if it could not
be asked, or was withdrawn; 130 if you interrupted it.`

// questionScope says in which session or directory a question is asked.
type questionScope struct {
	Session    string `json:"session,omitempty"`
	WorkingDir string `json:"working_dir,omitempty"`
}

func (p *questionScope) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.Session, "session", "", "the session that also waits for the answer (default: none)")
}

// newQuestion returns the command that asks the user a question.
func newQuestion(s *settings) *cobra.Command {
	var p struct {
		Message string   `json:"message"`
		Subject string   `json:"subject,omitempty"`
		Options []string `json:"options,omitempty"`
		questionScope
	}
	cmd := &cobra.Command{
		Use: "ask TEXT", Annotations: begins(), Args: exactly("TEXT"),
		Short:   "Ask a question in the inbox, and print the answer",
		Long:    "Ask a question in the inbox, and print the answer when it comes.\n" + statusHelp,
		Example: "  duet-rpc ask \"Which version is this to be?\"\n  duet-rpc ask \"Deploy?\" --option now --option tomorrow",
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Message = args[0]
			return wait(cmd, s, "approval.ask", p, func(r protocol.Answer) error {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), r.Response)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&p.Subject, "subject", "", "its subject, in a few words")
	cmd.Flags().StringArrayVar(&p.Options, "option", nil, "an answer to choose; may be given several times")
	p.flag(cmd)
	return cmd
}

// newPermission returns the command that asks whether a tool may run.
func newPermission(s *settings) *cobra.Command {
	var p struct {
		Tool  string          `json:"tool_name"`
		Input json.RawMessage `json:"tool_input,omitempty"`
		questionScope
	}
	var input string
	cmd := &cobra.Command{
		Use: "permission TOOL", Annotations: begins(), Args: exactly("TOOL"),
		Short: "Ask whether a tool may run: the rules, and then you",
		Long: "Ask whether a tool may run: rules and modes decide first, as for an agent, then you in the\n" +
			"inbox. The input is printed, since the answer may change it.\n" + statusHelp,
		Example: "  duet-rpc permission Bash --input '{\"command\":\"make deploy\"}' && make deploy",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			p.Tool, p.Input = args[0], json.RawMessage(input)
			if input == "" {
				p.Input = json.RawMessage("{}")
			}
			if !json.Valid(p.Input) || p.Input[0] != '{' {
				return fmt.Errorf("--input must be a JSON object, such as {\"command\":\"make\"}")
			}
			if p.WorkingDir, err = os.Getwd(); err != nil {
				return err
			}
			return wait(cmd, s, "approval.request", p, func(r protocol.Permission) error {
				if len(r.UpdatedInput) == 0 {
					r.UpdatedInput = p.Input
				}
				return term.Raw(cmd.OutOrStdout(), r.UpdatedInput)
			})
		},
	}
	cmd.Flags().StringVar(&input, "input", "", "the tool's input, a JSON object")
	p.flag(cmd)
	return cmd
}

// refusal is the text of a refused question: a denial has the words of the person who denied it, which
// alone do not say what they are.
func refusal(err *client.Error) string {
	if err.Kind() == "permission_denied" {
		return "Permission denied: " + err.Message
	}
	return err.Message
}

// wait asks the question and waits for the answer, without a timeout.
func wait[R any](cmd *cobra.Command, s *settings, method string, params any, print func(R) error) error {
	return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
		var answer json.RawMessage
		err := c.Call(ctx, method, params, &answer, client.WithTimeout(0))
		var refused *client.Error
		if errors.As(err, &refused) && refused.Kind() == "permission_denied" {
			fmt.Fprintln(cmd.ErrOrStderr(), term.Line(refusal(refused)))
			return exitStatus(denied)
		}
		if err != nil {
			return err
		}
		if s.JSON {
			return term.Raw(cmd.OutOrStdout(), answer)
		}
		var r R
		if err := json.Unmarshal(answer, &r); err != nil {
			return err
		}
		return print(r)
	})
}
