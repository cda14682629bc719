package acpagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// An asked question is open at the client.
type asked struct {
	question hubclient.Approval
	cancel   context.CancelFunc // cancels the request to the client
}

// ask shows an agent's question to the client's user. The question is in the inbox as well: the
// first answer decides, and closes the question in the other place. The caller holds s.order.
func (s *session) ask(q hubclient.Approval) {
	s.mu.Lock()
	_, isAsked := s.asking[q.ApprovalID]
	if isAsked || slices.ContainsFunc(s.askAgain, func(a hubclient.Approval) bool { return a.ApprovalID == q.ApprovalID }) {
		s.mu.Unlock()
		return // already open; the hub repeats open questions
	}
	ctx, cancel := context.WithTimeout(s.ctx, questionWithin)
	s.asking[q.ApprovalID] = asked{q, cancel}
	s.mu.Unlock()
	asker := asker{Client: s.conn, For: s.agent.client.is()}
	if s.hasStates {
		s.requiresAction(q.TurnUUID)
	}
	if !asker.Fits(q) {
		s.remark(acp.SeverityWarning, agentName(q)+" asks: "+questionInWords(q), "This editor cannot show the question. Answer with: duet-rpc "+
			"approvals",
			"%s asks: %s — this editor cannot show it. Answer with: duet-rpc approvals", agentName(q), questionInWords(q))
		return
	}
	about := s.translator.Question(q)
	if !s.conn.Go(func(connected context.Context) {
		defer cancel()
		defer context.AfterFunc(connected, cancel)()
		s.await(ctx, asker, q, about)
	}) {
		cancel()
	}
}

// await waits for the user's answer, and sends it to the hub as the decision.
func (s *session) await(ctx context.Context, asker asker, q hubclient.Approval, about acp.ToolCall) {
	log := s.agent.opts.Logger
	decision, err := asker.Ask(ctx, s.id, q, about)
	switch {
	case ctx.Err() != nil, errors.Is(err, jsonrpc2.ErrClosed):
		return // it was answered in another place, or must be
	case err != nil:
		log.Warn("the client could not be asked; the question stays in the inbox", "approval", q.ApprovalID, "err", err)
		return
	case decision == nil:
		log.Info("the client has not answered; the question stays in the inbox", "approval", q.ApprovalID)
		return
	}
	decision.Client = s.agent.client.title()
	decided, _, err := hubclient.Decide(context.WithoutCancel(ctx), s.agent.hub, *decision)
	if err != nil {
		log.Warn("an answer was not taken", "approval", q.ApprovalID, "err", err)
		s.order.Lock()
		defer s.order.Unlock()
		s.remark(acp.SeverityWarning, "Your answer was not taken: "+message(err), "The question waits in the inbox: /inbox, or duet-rpc "+
			"approvals",
			"your answer was not taken: %s. The question waits in the inbox: /inbox, or duet-rpc approvals", message(err))
	} else if !decided.Success {
		log.Info("an answer came too late", "approval", q.ApprovalID, "why", decided.Error)
	}
}

// answered closes a question that was answered in any place.
func (s *session) answered(id string) {
	s.mu.Lock()
	one := s.asking[id]
	delete(s.asking, id)
	s.askAgain = slices.DeleteFunc(s.askAgain, func(q hubclient.Approval) bool { return q.ApprovalID == id })
	s.mu.Unlock()
	if one.cancel != nil {
		one.cancel()
	}
}

// takeBack cancels the questions of a turn that died with its hub, because clients close them
// with their tool calls. The questions stay open at the hub, so askOpen repeats them after the
// client has the end of the turn. The caller holds s.mu.
func (s *session) takeBack() {
	for _, id := range slices.Sorted(maps.Keys(s.asking)) {
		s.asking[id].cancel()
		s.askAgain = append(s.askAgain, s.asking[id].question)
	}
	clear(s.asking)
}

// askOpen repeats the questions that takeBack cancelled and that are still open. The caller holds
// s.order.
func (s *session) askOpen() {
	s.mu.Lock()
	open := s.askAgain
	s.askAgain = nil
	s.mu.Unlock()
	for _, q := range open {
		s.ask(q)
	}
}

// agentName returns the name of the agent that asks.
func agentName(q hubclient.Approval) string {
	if q.Agent == "" {
		return "The agent"
	}
	return q.Agent
}

// A questionClient receives questions. Cancelling a call cancels its question.
type questionClient interface {
	Call(ctx context.Context, method string, params, result any) error
}

// An asker shows an approval to the user of an ACP client, offers the agent's options, and
// converts the answer into a decision. It accepts no other answers.
type asker struct {
	Client questionClient
	For    acp.Client
}

// ownOptions are the options for a question of an agent that offers none.
var ownOptions = []acp.PermissionOption{
	{OptionID: "duet-allow", Name: "Allow", Kind: acp.AllowOnce},
	{OptionID: "duet-reject", Name: "Reject", Kind: acp.RejectOnce},
}

// Fits reports whether the client can show a question so that the user can answer it. Other
// questions must be answered in the inbox.
func (a asker) Fits(q hubclient.Approval) bool {
	switch {
	case q.Mode == domain.ElicitForm:
		return acp.Has(a.For.Can.Elicitation.Form)
	case q.Mode == domain.ElicitURL:
		return acp.Has(a.For.Can.Elicitation.URL)
	case q.Type == domain.HumanContact:
		return len(q.Options) > 0 || acp.Has(a.For.Can.Elicitation.Form)
	}
	return true
}

// Ask asks about a tool call, and returns the decision; nil if the user made none. It returns the
// error of ctx if the question was answered in another place.
func (a asker) Ask(ctx context.Context, session string, q hubclient.Approval, about acp.ToolCall) (*protocol.DecisionParams, error) {
	if q.Mode != "" || q.Type == domain.HumanContact && len(q.Options) == 0 {
		return a.elicit(ctx, session, q)
	}
	return a.permit(ctx, session, q, about)
}

// permit asks whether a tool may run, or which of the agent's options applies.
func (a asker) permit(ctx context.Context, session string, q hubclient.Approval, about acp.ToolCall) (*protocol.DecisionParams, error) {
	options := offered(q)
	var answer acp.PermissionResponse
	asked := a.For.Question(permission(session, q, about, options))
	err := a.Client.Call(ctx, acp.MethodRequestPermission, asked, &answer)
	if err != nil || answer.Outcome.Outcome != acp.Selected {
		return nil, err
	}
	i := slices.IndexFunc(options, func(o acp.PermissionOption) bool { return o.OptionID == answer.Outcome.OptionID })
	if i < 0 {
		return nil, fmt.Errorf("the client chose the option %q, which was not offered", answer.Outcome.OptionID)
	}
	chosen := options[i]
	d := &protocol.DecisionParams{ApprovalID: q.ApprovalID}
	if len(q.Options) > 0 {
		d.Option = chosen.OptionID
	}
	switch rejects := chosen.Kind == acp.RejectOnce || chosen.Kind == acp.RejectAlways; {
	case rejects:
		d.Decision, d.Comment = protocol.Deny, chosen.Name
	case q.Type == domain.HumanContact:
		d.Decision, d.Comment = protocol.Respond, chosen.Name
	default:
		d.Decision = protocol.Approve
	}
	return d, nil
}

// offered returns the agent's options, each with a kind of the protocol.
func offered(q hubclient.Approval) []acp.PermissionOption {
	if len(q.Options) == 0 {
		return ownOptions
	}
	options := make([]acp.PermissionOption, len(q.Options))
	for i, o := range q.Options {
		options[i] = acp.PermissionOption{OptionID: o.ID, Name: cmp.Or(o.Name, o.ID), Kind: string(o.Kind)}
		switch string(o.Kind) {
		case acp.AllowOnce, acp.AllowAlways, acp.RejectOnce, acp.RejectAlways:
		default:
			options[i].Kind = acp.AllowOnce
		}
	}
	return options
}

// answerField is the only field of the form for a question that needs a text.
const answerField = "answer"

var wordsSchema = json.RawMessage(`{"type":"object","properties":{"` + answerField + `":{"type":"string","title":"Your answer","minLength":1}},"required":["` + answerField + `"]}`)

// elicit asks the user to fill in a form, to open an address, or to write a text.
func (a asker) elicit(ctx context.Context, session string, q hubclient.Approval) (*protocol.DecisionParams, error) {
	r := acp.ElicitationRequest{
		SessionID: session, Mode: domain.ElicitForm, Message: cmp.Or(q.Title, q.Subject, "The agent asks."), Schema: q.Schema,
	}
	inWords := q.Mode == ""
	switch {
	case inWords:
		r.Schema = wordsSchema
	case q.Mode == domain.ElicitURL:
		r.Mode, r.URL, r.ID = domain.ElicitURL, q.URL, q.ApprovalID
		if len(q.URLWarnings) > 0 {
			r.Message += "\n" + strings.Join(q.URLWarnings, "\n")
		}
	}
	var answer acp.ElicitationResponse
	if err := a.Client.Call(ctx, acp.MethodElicit, r, &answer); err != nil {
		return nil, err
	}
	d := &protocol.DecisionParams{ApprovalID: q.ApprovalID}
	switch answer.Action {
	case "accept":
		d.Decision, d.Comment = protocol.Respond, "agreed"
		if inWords {
			var words struct {
				Answer string `json:"answer"`
			}
			_ = json.Unmarshal(answer.Content, &words) // an unreadable answer counts as empty
			if d.Comment = words.Answer; d.Comment == "" {
				return nil, nil
			}
		} else if q.Mode == domain.ElicitForm {
			d.Content = answer.Content
		}
	case "decline":
		d.Decision, d.Comment = protocol.Deny, "declined"
	case "cancel":
		if inWords {
			return nil, nil
		}
		d.Decision = protocol.Cancel
	default:
		return nil, nil
	}
	return d, nil
}

// questionInWords returns the question on one line.
func questionInWords(q hubclient.Approval) string {
	text, _, _ := strings.Cut(q.Asks(), "\n")
	return text
}

// described returns the full text of an approval from getApproval, with its options.
func described(q hubclient.Approval) string {
	var b strings.Builder
	b.WriteString(cmp.Or(q.Title, q.Subject, q.ToolName, "a question") + "\n\n")
	switch {
	case q.URL != "":
		b.WriteString("Yes means that you open " + q.URL + "\n\n")
	case q.Plan != "":
		b.WriteString(q.Plan + "\n\n")
	case q.Diff != "":
		b.WriteString(fenced("diff", q.Diff))
	case len(q.ToolInput) > 0 && string(q.ToolInput) != "null":
		b.WriteString(fenced("json", string(q.ToolInput)))
	}
	if q.Details != "" {
		b.WriteString(q.Details + "\n\n")
	}
	for i, o := range q.Options {
		fmt.Fprintf(&b, "%d. %s\n", i+1, cmp.Or(o.Name, o.ID))
	}
	return b.String()
}

// fenced returns a text as a Markdown code block, whatever the text contains.
func fenced(language, text string) string {
	fence := visible.Fence(text)
	return fmt.Sprintf("%s%s\n%s\n%s\n\n", fence, language, strings.TrimSuffix(text, "\n"), fence)
}

// answerTo converts a text to a decision: the number or the name of an option, yes or no, or the
// text itself if the question needs one.
func answerTo(q hubclient.Approval, words string) (d protocol.DecisionParams, ok bool) {
	d = protocol.DecisionParams{ApprovalID: q.ApprovalID}
	n, err := strconv.Atoi(words)
	i := slices.IndexFunc(q.Options, func(o domain.Option) bool { return o.ID == words || strings.EqualFold(o.Name, words) })
	if err == nil && n >= 1 && n <= len(q.Options) {
		i = n - 1
	}
	yes, no := strings.EqualFold(words, "yes"), strings.EqualFold(words, "no")
	switch {
	case i >= 0:
		o := q.Options[i]
		d.Option, d.Comment = o.ID, cmp.Or(o.Name, o.ID)
		switch {
		case o.Kind.Rejects():
			d.Decision = protocol.Deny
		case q.Type == domain.HumanContact:
			d.Decision = protocol.Respond
		default:
			d.Decision, d.Comment = protocol.Approve, ""
		}
		return d, true
	case q.Mode == domain.ElicitForm:
		d.Decision, d.Comment = protocol.Deny, "declined"
		return d, no
	case q.Mode == domain.ElicitURL && yes, q.Type == domain.HumanContact && q.Mode == "":
		d.Decision, d.Comment = protocol.Respond, words
		return d, true
	case no:
		d.Decision, d.Comment = protocol.Deny, "denied"
		return d, true
	}
	d.Decision = protocol.Approve
	return d, yes
}

// permission returns the permission request of a question.
func permission(
	session string, q hubclient.Approval, about acp.ToolCall, options []acp.PermissionOption,
) acp.PermissionRequest {
	var texts []string
	for _, text := range []string{q.Details, q.Reopened} {
		if text != "" {
			texts = append(texts, text)
		}
	}
	return acp.PermissionRequest{
		SessionID: session, ToolCall: about, Options: options,
		Title: cmp.Or(q.Title, q.Subject, q.ToolName, "The agent asks."), Description: strings.Join(texts, "\n\n"),
		IsAboutCall: q.ToolUseID != "" || q.Type != domain.HumanContact,
	}
}
