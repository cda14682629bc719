package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/diff"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/form"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// Pending approvals: finding one by its id, and its layout.

// shortID is how many characters of an approval's id are shown if they are unique.
const shortID = 8

// ShortID returns the first characters of an approval's id.
func ShortID(id string) string { return id[:min(len(id), shortID)] }

// UniqueID returns the shortest beginning of an id that no other open approval has, but at
// least that of ShortID.
func UniqueID(id string, open []hubclient.Approval) string {
	for n := shortID; n < len(id); n++ {
		same := 0
		for _, a := range open {
			if strings.HasPrefix(a.ApprovalID, id[:n]) {
				same++
			}
		}
		if same <= 1 {
			return id[:n]
		}
	}
	return id
}

// FindApproval finds an open approval by its id, the beginning of its id, or its tool call. An
// approval that is not open needs its whole id.
func FindApproval(ctx context.Context, c *client.Client, word string) (hubclient.Approval, json.RawMessage, error) {
	open, _, err := hubclient.OpenApprovals(ctx, c, "")
	if err != nil {
		return hubclient.Approval{}, nil, err
	}
	id, err := Meant(word, open)
	if err != nil {
		return hubclient.Approval{}, nil, err
	}
	return hubclient.GetApproval(ctx, c, id)
}

// Meant returns the id of the open approval that a word names, or the word.
func Meant(word string, open []hubclient.Approval) (string, error) {
	var fit []string
	for _, a := range open {
		switch {
		case a.ApprovalID == word:
			return word, nil
		case strings.HasPrefix(a.ApprovalID, word), a.CallID == word, a.ToolUseID == word:
			fit = append(fit, a.ApprovalID)
		}
	}
	switch len(fit) {
	case 0:
		return word, nil
	case 1:
		return fit[0], nil
	}
	return "", fmt.Errorf("%q means %d open questions: %s", word, len(fit), strings.Join(fit, ", "))
}

// Sheet lays out an approval of a session, for a command that answers it. dir is the session's
// directory.
func Sheet(a hubclient.Approval, dir string) sheet { return sheetOf(a, dir, true) }

// sheetOf is Sheet. named says whether the fields of a form are shown with the names that a command
// needs; a dialogue shows only the questions.
func sheetOf(a hubclient.Approval, dir string, named bool) sheet {
	q := Question{Named: named, Title: a.Title, Subject: a.Subject, Input: a.ToolInput, Diff: diffOf(
		a, dir,
	), Dir: dir, Reopened: a.Reopened, Cut: a.Truncated}
	if a.Type == domain.FunctionCall {
		q.Tool, q.Plan, q.Details = cmp.Or(a.ToolName, "a tool"), a.Plan, a.Details
		for _, o := range offered(a) {
			q.Options = append(q.Options, o.String())
		}
		return Lay(q, term.Marks)
	}
	switch a.Mode {
	case domain.ElicitForm:
		if f, err := form.Read(a.Schema); err == nil { // fails only if the schema was too long for the event
			if q.Fields = f.Fields; !named {
				q.Fields = f.Questions()
			}
		}
	case domain.ElicitURL:
		q.Link = &link{URL: a.URL, Host: a.URLHost, Warnings: a.URLWarnings}
	}
	for _, o := range a.Options {
		q.Options = append(q.Options, o.Name)
	}
	return Lay(q, term.Marks)
}

// offered returns the agent's answers to a question about a tool, or none if the keys y, n and s
// say the same: to allow it once or always, or to deny it.
func offered(a hubclient.Approval) []domain.Option {
	kinds := make(map[domain.OptionKind]int)
	for _, o := range a.Options {
		if kinds[o.Kind]++; kinds[o.Kind] > 1 {
			return a.Options
		}
	}
	usual := kinds[domain.AllowOnce] + kinds[domain.AllowAlways] + kinds[domain.RejectOnce] + kinds[domain.RejectAlways]
	switch {
	case a.Plan != "", usual < len(a.Options),
		kinds[domain.AllowOnce] == 0,                                    // y would mean always
		kinds[domain.RejectAlways] > 0 && kinds[domain.RejectOnce] == 0, // n would mean always
		kinds[domain.AllowAlways] > 0 && len(a.Rules) == 0:              // there is no s
		return a.Options
	}
	return nil
}

// howToAnswer returns the command that answers the question with this id.
func howToAnswer(a hubclient.Approval, id string) string {
	switch a.Mode {
	case domain.ElicitForm:
		return "duet-rpc approvals respond " + id + " --field NAME=VALUE, or --decline or --cancel"
	case domain.ElicitURL:
		return "duet-rpc approvals respond " + id + " yes, or --decline or --cancel"
	}
	return "duet-rpc approvals allow " + id + ", or deny or respond"
}

// diffOf returns the changes that an approval would make, as a diff.
func diffOf(a hubclient.Approval, dir string) string {
	if a.Diff != "" {
		return a.Diff
	}
	return strings.Join(fileDiffs(a, dir), "")
}

// fileDiffs returns a diff for each file that an approval would change.
func fileDiffs(a hubclient.Approval, dir string) (diffs []string) {
	for _, d := range a.Diffs {
		diffs = append(diffs, diff.Part(dir, d.Path, d.OldText, &d.NewText, d.Line))
	}
	return diffs
}

// wholeApproval fetches the parts of an approval that were too long for its event. If that
// fails, it returns the truncated approval.
func wholeApproval(ctx context.Context, c *client.Client, a hubclient.Approval) hubclient.Approval {
	if !a.Truncated {
		return a
	}
	whole, _, err := hubclient.GetApproval(ctx, c, a.ApprovalID)
	if err != nil {
		return a
	}
	a.ToolInput, a.Diff, a.Plan, a.Details, a.Truncated = whole.ToolInput, whole.Diff, whole.Plan, whole.Details, whole.Truncated
	a.TextMember = whole.TextMember
	a.Type, a.ToolName, a.Title, a.Subject, a.Options, a.Reopened = whole.Type, whole.ToolName, whole.Title, whole.Subject, whole.Options, whole.Reopened
	a.Elicitation, a.OptionsOnly, a.Declinable = whole.Elicitation, whole.OptionsOnly, whole.Declinable
	return a
}

// FormValues returns the values of a form; given are values as NAME=VALUE.
func FormValues(a hubclient.Approval, given []string) (json.RawMessage, error) {
	f, err := form.Read(a.Schema)
	if err != nil {
		return nil, errors.New(term.Line(err.Error()))
	}
	values := f.Defaults()
	for _, pair := range given {
		name, typed, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("--field takes NAME=VALUE, got %q", pair)
		}
		field, err := f.Field(name)
		if err == nil {
			values[name], err = field.Parse(typed)
		}
		if err != nil {
			return nil, errors.New(term.Line(err.Error()))
		}
	}
	content := f.Values(values)
	if err := f.Check(content); err != nil {
		return nil, errors.New(term.Line(err.Error()))
	}
	return content, nil
}

// WithOption adds the option that a word names to a decision. The word is the option's number,
// id or name.
func WithOption(d protocol.DecisionParams, a hubclient.Approval, word string) (protocol.DecisionParams, error) {
	if word == "" {
		return d, nil
	}
	var names []string
	for i, o := range a.Options {
		if word == strconv.Itoa(i+1) || word == o.ID || strings.EqualFold(word, o.Name) {
			d.Option = o.ID
			return d, nil
		}
		names = append(names, strconv.Itoa(i+1)+" "+o.String())
	}
	if len(names) == 0 {
		return d, errors.New("--option: the agent offers none")
	}
	return d, errors.New(term.Line(fmt.Sprintf("--option %q is none of: %s", word, strings.Join(names, "; "))))
}

// AwaitQuestion waits for a question. A question that is already open counts, because a
// subscription begins with the open ones.
func AwaitQuestion(ctx context.Context, c *client.Client, session string) error {
	ctx, cancel := hubclient.WhileConnected(ctx, c)
	defer cancel()
	asked := make(chan struct{}, 1)
	sub, err := eventstream.Subscribe(ctx, c, eventstream.Options{
		Kinds: []string{protocol.KindApprovalOpened}, Session: session,
	}, func(eventstream.Event) {
		select {
		case asked <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return hubclient.OrGone(ctx, err)
	}
	defer sub.Close()
	for {
		if open, _, err := hubclient.OpenApprovals(ctx, c, session); err != nil || len(open) > 0 {
			return err
		}
		select {
		case <-asked: // the question may already be answered
		case <-sub.Done():
			return errors.Join(errors.New("the daemon sends no more events"), sub.Err())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Asks describes a question on one line: by its command, or as the agent does.
func Asks(a hubclient.Approval) string {
	text := a.Asks()
	if command, _ := commandOf(Question{Tool: a.ToolName, Input: a.ToolInput}); command != "" {
		text = "$ " + command
	}
	if a.Reopened != "" {
		text = "again: " + text
	}
	return text
}

// askWhole asks a question with its agent and its time, which its event lacks.
func (a *asker) askWhole(ctx context.Context, e eventstream.Event, d *protocol.ApprovalOpenedEvent) {
	approval := hubclient.ApprovalOf(e, d)
	if a.seen[approval.ApprovalID] {
		return
	}
	if whole, _, err := hubclient.GetApproval(ctx, a.hub, approval.ApprovalID); err == nil {
		approval = whole
	}
	if approval.Status == "" || approval.Status == domain.ApprovalPending { // otherwise it was answered before it was shown
		a.ask(ctx, approval)
	}
}

// decideAlone makes a decision when the user cannot be asked again. If the decision does not
// fit the question, it interrupts the turn, which would otherwise wait forever.
func (a *asker) decideAlone(ctx context.Context, q asked, d protocol.DecisionParams) {
	if a.decide(ctx, q, d) || ctx.Err() != nil {
		return
	}
	a.view.Note("there is no terminal to ask on; interrupting")
	if err := cmp.Or(q.hub, a.hub).Call(
		ctx, "turn.interrupt", protocol.InterruptTurnParams{Turn: protocol.Ref(q.TurnUUID), Reason: "nobody_answers"}, nil,
	); err != nil {
		a.view.Note(InDialogue(err).Error())
	}
}

// decide sends a decision and reports whether the question is closed.
func (a *asker) decide(ctx context.Context, q asked, d protocol.DecisionParams) bool {
	d.ApprovalID = q.ApprovalID
	if q.Type == domain.HumanContact && q.Mode == "" {
		d = asResponse(q, d)
	}
	var r protocol.DecisionResult
	err := a.send(ctx, cmp.Or(q.hub, a.hub), d, &r)
	if err != nil && ctx.Err() == nil {
		a.view.Note(InDialogue(err).Error())
		return false
	}
	if r.Success {
		a.decided[q.ApprovalID] = true
		if r.ToldTurn != "" {
			a.view.Note("the agent receives the comment with its next prompt: " + r.ToldTurn)
			a.commentTurns = append(a.commentTurns, r.ToldTurn)
		}
	} // otherwise the turn was interrupted or another client was faster, which an event reports
	return true
}

// asResponse converts a decision into an answer to a question that is not about a tool.
func asResponse(q asked, d protocol.DecisionParams) protocol.DecisionParams {
	if d.Decision == protocol.Approve && len(q.Options) > 0 {
		d.Option, d.Comment = q.Options[0].ID, q.Options[0].Name
	}
	if d.Decision != protocol.Deny || !q.Declinable {
		d.Decision = protocol.Respond
	}
	d.Comment = cmp.Or(d.Comment, "yes")
	return d
}

// send sends a decision and waits for the hub's response. It handles signals and the hub's
// silence meanwhile.
func (a *asker) send(ctx context.Context, hub *client.Client, d protocol.DecisionParams, result any) error {
	d.Client = hubclient.Shell
	sent := make(chan error, 1)
	go func() { sent <- hub.Call(ctx, "approval.decide", d, result) }()
	for {
		select {
		case err := <-sent:
			if err == nil {
				a.hubHeard(a.view.Note)
			}
			return err
		case silent := <-a.silence:
			a.hubSilent(silent, a.view.Note)
		case sig := <-a.Signals:
			a.meanwhile(sig)
		}
	}
}
