package acpagent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// command runs a prompt that is a command of Duet, and returns its output. handled is false for
// other prompts.
func (s *session) command(ctx context.Context, prompt string) (text string, handled bool, err error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(prompt), " ")
	name, isCommand := strings.CutPrefix(name, "/")
	if !isCommand || name != commandAgent && name != commandInbox && name != commandQueue {
		return "", false, nil
	}
	s.order.Lock()
	isOurs := slices.ContainsFunc(s.settings.commands, func(c acp.Command) bool {
		return c.Name == name && slices.ContainsFunc(ownCommands, func(own acp.Command) bool { return own.Description == c.Description })
	})
	s.order.Unlock()
	if !isOurs {
		return "", false, nil
	}
	switch name {
	case commandAgent:
		text, err = s.agentCommand(ctx, strings.TrimSpace(rest))
	case commandInbox:
		text, err = s.inboxCommand(ctx, strings.Fields(rest))
	case commandQueue:
		text, err = s.queueCommand(ctx, strings.TrimSpace(rest))
	}
	return text, true, refused(err)
}

// commandRan sends the output of a command of Duet, and returns the response to its prompt. For
// a client with states the output is a short turn, unless the agent works.
func (s *session) commandRan(prompt []json.RawMessage, text string) acp.PromptResponse {
	s.order.Lock()
	defer s.order.Unlock()
	if !s.hasStates {
		s.send(words("%s", text))
		return acp.PromptResponse{StopReason: acp.StopEndTurn}
	}
	s.mu.Lock()
	isIdle := s.work.now() == acp.StateIdle
	s.mu.Unlock()
	message := acp.UserMessage(uuid.NewString())
	for _, block := range prompt {
		message.Content = append(message.Content, block)
	}
	s.send(message)
	if isIdle {
		s.send(s.stateUpdate(acp.StateRunning)...)
	}
	s.send(words("%s", text))
	if isIdle {
		updates := s.stateUpdate(acp.StateIdle)
		end := updates[len(updates)-1].(acp.StateUpdate)
		end.StopReason = acp.StopEndTurn
		s.send(append(updates[:len(updates)-1], end)...)
	}
	return acp.PromptResponse{MessageID: message.MessageID}
}

// agentCommand chooses the agent behind the session, or lists the available agents.
func (s *session) agentCommand(ctx context.Context, name string) (string, error) {
	v, err := s.look(ctx)
	if err != nil {
		return "", err
	}
	var o acp.ConfigOption
	if i := slices.IndexFunc(v.options, func(o acp.ConfigOption) bool { return o.ID == configAgent }); i >= 0 {
		o = v.options[i]
	}
	switch {
	case name == "":
		return fmt.Sprintf("The agent behind this session is %v.%s\n", o.CurrentValue, others(o)), nil
	case v.offers("", configAgent, name) != nil:
		return fmt.Sprintf("The agent behind this session stays %v: there is no agent %s.%s\n", o.CurrentValue, name, others(o)), nil
	}
	if err := s.set(ctx, "", configAgent, name); err != nil {
		return fmt.Sprintf("The agent behind this session stays %v: %s\n", o.CurrentValue, err), nil
	}
	s.order.Lock()
	s.settingsChanged()
	s.order.Unlock()
	return "The agent behind this session is " + name + ".\n", nil
}

// others lists the other agents, if there are any.
func others(o acp.ConfigOption) string {
	if len(o.Options) < 2 {
		return ""
	}
	var b strings.Builder
	b.WriteString(" There are:\n\n")
	for _, a := range o.Options {
		fmt.Fprintf(&b, "- `%s` %s\n", a.Value, a.Name)
	}
	return b.String()
}

// inboxCommand answers a question of any session, or lists the open questions.
func (s *session) inboxCommand(ctx context.Context, words []string) (string, error) {
	waiting, _, err := hubclient.OpenApprovals(ctx, s.agent.hub, "")
	if err != nil {
		return "", err
	}
	if len(words) == 0 {
		return s.listInbox(waiting), nil
	}
	q, ok := s.numbered(words[0], waiting)
	if !ok {
		return "No question " + words[0] + " waits.\n\n" + s.listInbox(waiting), nil
	}
	if len(words) == 1 {
		return s.described(ctx, q)
	}
	d, ok := answerTo(q, strings.Join(words[1:], " "))
	if !ok {
		text, err := s.described(ctx, q)
		return "That does not answer the question.\n\n" + text, err
	}
	d.Client = s.agent.client.title()
	decided, _, err := hubclient.Decide(ctx, s.agent.hub, d)
	switch {
	case err != nil:
		return "It was not taken: " + message(err) + "\n", nil
	case !decided.Success:
		return "It was not taken: " + decided.Error + "\n", nil
	}
	return "Answered.\n", nil
}

// described returns the full text of a question.
func (s *session) described(ctx context.Context, q hubclient.Approval) (string, error) {
	whole, _, err := hubclient.GetApproval(ctx, s.agent.hub, q.ApprovalID)
	return described(whole), err
}

// numbered returns the question with a number in the last shown list, if it is still open. A new
// list would give the number to another question.
func (s *session) numbered(word string, waiting []hubclient.Approval) (q hubclient.Approval, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inbox == nil {
		s.number(waiting)
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < 1 || n > len(s.inbox) {
		return q, false
	}
	i := slices.IndexFunc(waiting, func(q hubclient.Approval) bool { return q.ApprovalID == s.inbox[n-1] })
	if i < 0 {
		return q, false
	}
	return waiting[i], true
}

// number numbers questions. The caller holds s.mu.
func (s *session) number(waiting []hubclient.Approval) {
	s.inbox = make([]string, len(waiting))
	for i, q := range waiting {
		s.inbox[i] = q.ApprovalID
	}
}

// listInbox lists questions with new numbers.
func (s *session) listInbox(waiting []hubclient.Approval) string {
	s.mu.Lock()
	s.number(waiting)
	s.mu.Unlock()
	if len(waiting) == 0 {
		return "Nothing waits for an answer.\n"
	}
	var b strings.Builder
	for i, q := range waiting {
		fmt.Fprintf(&b, "%d. %s · %s: %s\n", i+1, q.Turn, agentName(q), questionInWords(q))
	}
	b.WriteString("\n`/inbox 1` shows one, `/inbox 1 yes` answers it.\n")
	return b.String()
}

// queueCommand changes a waiting prompt of the session, or lists the waiting prompts.
func (s *session) queueCommand(ctx context.Context, rest string) (string, error) {
	s.order.Lock()
	isNew := s.start != nil
	s.order.Unlock()
	if isNew {
		return s.listQueue(nil), nil
	}
	waiting, err := s.queued(ctx, "session.get", protocol.SessionRefParams{Session: protocol.Ref(s.id)})
	if err != nil || rest == "" {
		return s.listQueue(waiting), err
	}
	number, rest, _ := strings.Cut(rest, " ")
	verb, text, _ := strings.Cut(strings.TrimSpace(rest), " ")
	text = strings.TrimSpace(text)
	at, ok := s.placed(number, waiting)
	if !ok {
		return "No prompt " + number + " waits.\n\n" + s.listQueue(waiting), nil
	}
	id := protocol.Ref(waiting[at].Turn)
	method, params := "turn.move", any(protocol.MoveTurnParams{Turn: id})
	// Prompts that no client wrote keep their places.
	var movable []protocol.Ref
	for _, p := range waiting {
		if p.Editable {
			movable = append(movable, protocol.Ref(p.Turn))
		}
	}
	place := slices.Index(movable, id)
	switch {
	case verb == "edit" && text != "":
		method, params = "turn.edit", protocol.EditTurnParams{Turn: id, Prompt: text}
	case verb == "up" && place > 0:
		params = protocol.MoveTurnParams{Turn: id, Before: movable[place-1]}
	case verb == "down" && place >= 0 && place+2 < len(movable):
		params = protocol.MoveTurnParams{Turn: id, Before: movable[place+2]}
	case verb == "down" && place >= 0 && place+2 == len(movable): // it then runs last
	case verb == "up", verb == "down":
		return "Prompt " + number + " stays where it is.\n\n" + s.listQueue(waiting), nil
	case verb == "drop" && text == "":
		method, params = "turn.interrupt", protocol.InterruptTurnParams{Turn: id}
	default:
		return queueHelp, nil
	}
	now, err := s.queued(ctx, method, params)
	if err != nil {
		return "It was not changed: " + message(err) + "\n", nil
	}
	if method == "turn.interrupt" {
		return "Prompt " + number + " does not run.\n", nil
	}
	return s.listQueue(now), nil
}

const queueHelp = "`/queue 2 edit TEXT` changes prompt 2, `/queue 2 up` and `/queue 2 down` move it, `/queue 2 drop` takes it back.\n"

func (s *session) queued(ctx context.Context, method string, params any) ([]*protocol.WaitingPrompt, error) {
	r, _, err := hubclient.Call[struct {
		Queued []*protocol.WaitingPrompt `json:"queued"`
	}](ctx, s.agent.hub, method, params)
	return r.Queued, err
}

// placed returns the index of the prompt with a number in the last shown list, if the prompt
// still waits.
func (s *session) placed(number string, waiting []*protocol.WaitingPrompt) (at int, ok bool) {
	s.mu.Lock()
	shown := s.queue
	s.mu.Unlock()
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return 0, false
	}
	if shown == nil {
		return n - 1, n <= len(waiting)
	}
	if n > len(shown) {
		return 0, false
	}
	at = slices.IndexFunc(waiting, func(p *protocol.WaitingPrompt) bool { return p.Turn == shown[n-1] })
	return at, at >= 0
}

// listQueue lists the waiting prompts with new numbers.
func (s *session) listQueue(waiting []*protocol.WaitingPrompt) string {
	shown := make([]string, len(waiting))
	var b strings.Builder
	for i, p := range waiting {
		shown[i] = p.Turn
		text, _, _ := strings.Cut(p.Prompt, "\n")
		fmt.Fprintf(&b, "%d. %s\n", i+1, text)
	}
	s.mu.Lock()
	s.queue = shown
	s.mu.Unlock()
	if len(waiting) == 0 {
		return "No prompt waits in this session.\n"
	}
	return b.String() + "\n" + queueHelp
}
