package acp

import (
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// prompt makes the session ready and runs the prompt in it.
func (a *agent) prompt(t *turn) (string, *task.Failure) {
	opening, failed := a.openSession(t)
	if failed != nil {
		return "", failed
	}
	with, failed := promptCapabilities(a.info.Prompt).ForPrompt(a.name, t.Params.Content)
	if failed != nil {
		a.reportSettings(t) // what it takes is known now
		return "", failed
	}
	if failed := a.choose(t); failed != nil {
		return "", failed
	}
	if t.Stopped() {
		return "", nil
	}
	a.noteOwnProcesses()
	result, err := call[promptResult](a, acp.MethodSessionPrompt, promptBlocks{Session: a.session, Texts: append(opening, acp.TextBlock(t.Params.Prompt)), With: with, Meta: t.Params.Meta})
	if err == nil && a.info.IsVersion2() {
		result, err = a.awaitIdle(t)
	}
	if err != nil {
		return "", a.failure(err)
	}
	if result.StopReason != "cancelled" && !t.Stopped() {
		t.delivered(t.answers.turnEnded())
	}
	if !t.Stopped() && t.answers.endedByDenial() {
		t.Event(catalog.EventDenialEndedTurn, struct{}{})
	}
	if u := t.usage(result.usage()); u != nil {
		t.Usage(*u)
	}
	if failed := a.troubled(t); failed != nil && result.StopReason == "end_turn" && !t.Stopped() {
		return "", failed
	}
	return result.StopReason, nil
}

// openSession makes sure that the agent has the conversation's session, and
// returns what has to precede the prompt.
func (a *agent) openSession(t *turn) ([]acp.ContentBlock, *task.Failure) {
	if a.session == "" {
		if failed := a.initialize(t.Launch); failed != nil {
			return nil, failed
		}
	}
	wanted := string(t.Conversation.NativeSessionID)
	switch {
	case a.session != "" && (wanted == "" || wanted == a.session), wanted != "" && a.resume(t, wanted):
		t.Event(catalog.EventNativeSession, catalog.NativeSession{SessionID: string(a.session), Resumed: true})
		return unanswered(t), nil
	case wanted == "" && a.session == "" && a.fork(t):
		t.Event(catalog.EventNativeSession, catalog.NativeSession{SessionID: string(a.session), Forked: true})
		return unanswered(t), nil
	case a.gone(): // the attempt was its end
		return nil, a.exited()
	}
	request := a.sessionRequest(t, "")
	takesSystemPrompt := request.SystemPrompt != nil
	claude := a.info.Info != nil && strings.Contains(strings.ToLower(a.info.Info.Name), "claude")
	if t.Conversation.SystemPrompt != "" && claude && !takesSystemPrompt { // its own way to be told
		request.Meta = map[string]any{"systemPrompt": map[string]any{"append": t.Conversation.SystemPrompt}}
		takesSystemPrompt = true
	}
	result, err := a.newSession(request)
	switch {
	case err != nil:
		return nil, a.failure(err)
	case result.SessionID == "":
		return nil, &task.Failure{Code: task.CodeAgent, Message: a.name + ": the agent opened a session without an id"}
	}
	a.session = string(result.SessionID)
	a.settings.Opened(result.offer, true)
	var opening []acp.ContentBlock
	if t.Conversation.SystemPrompt != "" && !takesSystemPrompt {
		opening = append(opening, acp.TextBlock(t.Conversation.SystemPrompt))
	}
	for _, file := range t.Conversation.ContextFiles {
		path := t.Workspace.Absolute(file)
		opening = append(opening, acp.ResourceLinkBlock(filepath.Base(path), (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()))
	}
	history := task.Before(t.Conversation.Messages, t.Params.Prompt)
	if history != "" {
		opening = append(opening, acp.TextBlock(history))
	}
	t.Event(catalog.EventNativeSession, catalog.NativeSession{SessionID: result.SessionID, Primed: history != ""})
	return opening, nil
}

// unanswered is what a session that was there before may not know.
func unanswered(t *turn) []acp.ContentBlock {
	text := task.Unanswered(t.Conversation.Messages, t.Params.Prompt)
	if text == "" {
		return nil
	}
	return []acp.ContentBlock{acp.TextBlock(text)}
}

// newSession opens a session. An agent that was given its key and does not use it
// before it is told to (codex) is told so.
func (a *agent) newSession(request sessionRequest) (sessionResult, error) {
	patience := 4 * a.startTimeout
	result, err := callWithin[sessionResult](a, patience, acp.MethodSessionNew, request)
	if method := acp.WithKey(a.info.AuthMethods, a.has); method != "" && acp.IsAuthRequired(err) {
		_, refused := callWithin[json.RawMessage](a, patience, a.info.Login(), map[string]string{"methodId": method})
		if refused == nil {
			return callWithin[sessionResult](a, patience, acp.MethodSessionNew, request)
		}
	}
	return result, err
}

// initialize offers version 2 of the protocol. An agent that knows version 1 only answers with
// that, or refuses the request and is asked again.
func (a *agent) initialize(launch *catalog.AgentLaunch) *task.Failure {
	request := acp.Offer(acp.ClientCapabilities{
		FS:       &acp.FileCapabilities{ReadTextFile: launch.Files == catalog.FilesReadWrite || launch.Files == "", WriteTextFile: launch.Files != catalog.FilesNone},
		Terminal: true, Session: sessionCapabilities, Elicitation: bothElicitations, Plan: json.RawMessage(`{}`),
	})
	if launch.Protocol == acp.Version1 {
		request = request.Version1Only()
	}
	info, err := callWithin[acp.Initialized](a, a.startTimeout, acp.MethodInitialize, request)
	if errors.As(err, new(*acp.Error)) && !a.gone() {
		info, err = callWithin[acp.Initialized](a, a.startTimeout, acp.MethodInitialize, request.Version1Only())
	}
	if err != nil {
		return a.failure(err)
	}
	a.info = info
	a.isKimi.Store(info.Info != nil && info.Info.Name == kimiCode)
	a.settings.Introduced(info.Info, promptCapabilities(info.Prompt).Takes())
	return nil
}

// resume resumes the agent's own session, or loads it, and reports whether it
// is there.
func (a *agent) resume(t *turn, id string) bool {
	request := a.sessionRequest(t, id)
	var result sessionResult
	var err error
	switch {
	case acp.Has(a.info.Session.Resume):
		result, err = callWithin[sessionResult](a, 4*a.startTimeout, acp.MethodSessionResume, request)
	case a.info.LoadSession:
		a.loading.Store(true)
		defer a.loading.Store(false)
		result, err = callWithin[sessionResult](a, 4*a.startTimeout, acp.MethodSessionLoad, request)
		if err == nil {
			a.replayed()
		}
	default:
		return false
	}
	if err != nil {
		a.driver.log.Info("the agent has lost its session", "agent", a.name, "err", err)
		return false
	}
	a.session = id
	a.settings.Opened(result.offer, false)
	return true
}
