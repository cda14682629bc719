package acp

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"

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
		a.reportSettings(t) // the agent's capabilities are known now
		return "", failed
	}
	if failed := a.choose(t); failed != nil {
		return "", failed
	}
	if t.Stopped() {
		return "", nil
	}
	a.noteOwnProcesses()
	texts := append(opening, acp.TextContent(t.Params.Prompt))
	blocks := promptBlocks{Session: a.session, Texts: texts, With: with, Meta: t.Params.Meta}
	var result promptResult
	err := acp.Prompt(context.Background(), a.conn, &a.info, a.session, blocks) // ends with the agent, not the turn
	if err == nil {
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
	if failed := a.codexFailure(t); failed != nil && result.StopReason == "end_turn" && !t.Stopped() {
		return "", failed
	}
	return result.StopReason, nil
}

// openSession makes sure that the agent has its own session open, and returns the content
// that must precede the prompt.
func (a *agent) openSession(t *turn) ([]acp.Content, *task.Failure) {
	if a.session == "" {
		if failed := a.initialize(t.Launch); failed != nil {
			return nil, failed
		}
	}
	wanted := string(t.Session.NativeSessionID)
	switch {
	case a.session != "" && (wanted == "" || wanted == a.session), wanted != "" && a.resume(t, wanted):
		t.Event(catalog.EventNativeSession, catalog.NativeSession{SessionID: string(a.session), Resumed: true})
		return unanswered(t), nil
	case wanted == "" && a.session == "" && a.fork(t):
		t.Event(catalog.EventNativeSession, catalog.NativeSession{SessionID: string(a.session), Forked: true})
		return unanswered(t), nil
	case a.gone(): // the agent exited during the attempt
		return nil, a.exited()
	}
	request := a.sessionRequest(t, "")
	takesSystemPrompt := request.SystemPrompt != nil
	if meta := claudeSystemPrompt(a.info.Info, t.Session.SystemPrompt); meta != nil && !takesSystemPrompt {
		request.Meta, takesSystemPrompt = meta, true
	}
	result, err := a.newSession(request, func(r sessionResult) { a.settings.Opened(r.offer, true) })
	switch {
	case err != nil:
		return nil, a.failure(err)
	case result.SessionID == "":
		return nil, &task.Failure{Code: task.CodeAgent, Message: a.name + ": the agent opened a session without an id"}
	}
	a.session = string(result.SessionID)
	var opening []acp.Content
	if t.Session.SystemPrompt != "" && !takesSystemPrompt {
		opening = append(opening, acp.TextContent(t.Session.SystemPrompt))
	}
	for _, file := range t.Session.ContextFiles {
		path := t.Workspace.Absolute(file)
		opening = append(opening, acp.LinkContent(filepath.Base(path), (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()))
	}
	history, failed := t.History(t.Params.Prompt)
	if failed != nil {
		return nil, failed
	}
	if history != "" {
		opening = append(opening, acp.TextContent(history))
	}
	t.Event(catalog.EventNativeSession, catalog.NativeSession{SessionID: result.SessionID, Primed: history != ""})
	return opening, nil
}

// unanswered returns the messages that a resumed session may not know.
func unanswered(t *turn) []acp.Content {
	text := task.Unanswered(t.Session.Messages, t.Params.Prompt)
	if text == "" {
		return nil
	}
	return []acp.Content{acp.TextContent(text)}
}

// newSession opens a session. Some agents have their key but use it only after a sign-in (codex):
// it signs them in. opened receives the result before later updates are handled.
func (a *agent) newSession(request acp.OpenSessionRequest, opened func(sessionResult)) (sessionResult, error) {
	patience := 4 * a.startTimeout
	result, err := callInOrder(a, patience, acp.MethodSessionNew, request, opened)
	if method := acp.WithKey(a.info.AuthMethods, a.has); method != "" && acp.IsAuthRequired(err) {
		_, refused := callWithin[json.RawMessage](a, patience, a.info.Login(), map[string]string{"methodId": method})
		if refused == nil {
			return callInOrder(a, patience, acp.MethodSessionNew, request, opened)
		}
	}
	return result, err
}

// initialize offers the newest version of the protocol. An agent that refuses the request gets the
// oldest one.
func (a *agent) initialize(launch *catalog.AgentLaunch) *task.Failure {
	can := acp.ClientCapabilities{
		FS: acp.FileCapabilities{
			ReadTextFile: launch.Files == catalog.FilesReadWrite || launch.Files == "", WriteTextFile: launch.Files != catalog.FilesNone,
		},
		Terminal: true, Plan: acp.Supported,
	}
	can.Elicitation.Form, can.Elicitation.URL = acp.Supported, acp.Supported
	// Otherwise agents write notices and compactions as messages.
	can.Session.ConfigOptions.Boolean, can.Session.Notices, can.Session.Compaction = acp.Supported, acp.Supported, acp.Supported
	request := acp.Offer(can, launch.Protocol)
	info, err := callWithin[acp.Initialized](a, a.startTimeout, acp.MethodInitialize, request)
	if errors.As(err, new(*acp.Error)) && !a.gone() {
		info, err = callWithin[acp.Initialized](a, a.startTimeout, acp.MethodInitialize, request.Fallback())
	}
	if err != nil {
		return a.failure(err)
	}
	a.info = info
	a.steering.introduced(info.Meta)
	a.settings.Introduced(info.Info, promptCapabilities(info.Prompt).Takes())
	return nil
}

// resume resumes the agent's own session, and reports whether that succeeded. It reports no history,
// which the hub has.
func (a *agent) resume(t *turn, id string) bool {
	if !a.info.CanResume() {
		return false
	}
	method, request, replays := a.info.Resume(a.sessionRequest(t, id))
	opened := func(r sessionResult) { a.settings.Opened(r.offer, false) }
	var err error
	if replays {
		defer a.history.load()()
		var result sessionResult
		result, err = callWithin[sessionResult](a, 4*a.startTimeout, method, request)
		if err == nil {
			a.replayed()
			opened(result) // a replayed report is older
		}
	} else {
		_, err = callInOrder(a, 4*a.startTimeout, method, request, opened)
	}
	if err != nil {
		a.driver.log.Info("the agent has lost its session", "agent", a.name, "err", err)
		return false
	}
	a.session = id
	return true
}

// fork makes the agent's session a fork of another of its sessions, if the hub's session begins
// there and the agent can fork. It reports whether it did.
func (a *agent) fork(t *turn) bool {
	from := t.Session.ForkNativeSessionID
	if from == "" || !acp.Has(a.info.Session.Fork) {
		return false
	}
	defer a.history.load()() // opencode sends the history again
	result, err := callWithin[sessionResult](a, 4*a.driver.opts.StartTimeout, acp.MethodSessionFork, a.sessionRequest(t, from))
	if err != nil || result.SessionID == "" || result.SessionID == from {
		a.driver.log.Info("the agent did not fork its session", "agent", a.name, "err", err)
		return false
	}
	a.replayed()
	a.session = string(result.SessionID)
	a.settings.Opened(result.offer, true)
	return true
}
