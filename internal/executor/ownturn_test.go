//go:build unix

package executor_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor"
)

// ownTurn is an agent-initiated turn, as agents of November 2026 send it.
func (a *acpAgent) ownTurn(style string) {
	ask := func() {
		_, result := a.ask(map[string]any{"toolCallId": "own-1", "title": "touch after.txt", "rawInput": map[string]any{"command": "touch after.txt"}}, []any{
			map[string]any{"optionId": "y", "name": "Yes", "kind": "allow_once"}, map[string]any{"optionId": "n", "name": "No", "kind": "reject_once"},
		})
		a.text("answer " + string(result))
	}
	switch style {
	case "claude": // 0.101
		a.text("It is over. ")
		ask()
		a.update(map[string]any{"sessionUpdate": "usage_update", "used": 11, "size": 100, "_meta": map[string]any{"_claude/model": "x"}})
		a.text(" Done.")
		a.update(map[string]any{"sessionUpdate": "usage_update", "used": 11, "size": 100, "cost": map[string]any{"amount": 0.5, "currency": "USD"}, "_meta": map[string]any{"_claude/origin": map[string]any{"kind": "task-notification"}}})
	case "codex": // 2.6, /goal
		a.text("Warning.")
		a.codexStatus(`{"threadStatus":{"type":"active","activeFlags":[]}}`)
		a.text(" word")
		a.codexStatus(`{"threadStatus":{"type":"idle"}}`)
	case "qwen": // qwen-code 0.24
		background := map[string]any{"taskId": "bg_1", "status": "completed", "commandLabel": "sleep 3"}
		a.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": "Completed."}, "_meta": map[string]any{"source": "background_task_completed", "backgroundTask": background}})
		m := a.call("_qwencode/start_turn", map[string]any{"sessionId": a.session, "source": "background_notification", "turnId": "t"})
		a.text(" start_turn " + string(m.Result) + ".")
		a.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": ""}, "_meta": map[string]any{"usage": map[string]any{"inputTokens": 10}}})
		a.raw(`{"jsonrpc":"2.0","method":"_qwencode/end_turn","params":{"turnId":"t"}}`)
	case "told":
		a.text("It is over.")
		a.raw(`{"jsonrpc":"2.0","method":"_session/turn_ended","params":{}}`)
	case "kimi": // 2.1: only its question comes, and no end signal
		ask := map[string]any{"sessionId": a.session, "toolCall": map[string]any{"toolCallId": "own-1", "title": "Bash", "content": []any{map[string]any{"type": "content", "content": map[string]any{"type": "text", "text": "touch after.txt"}}}}, "options": []any{map[string]any{"optionId": "y", "name": "Yes", "kind": "allow_once"}}}
		a.call("session/request_permission", ask)
	case "flood":
		for i := range 10_000 {
			a.raw(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%d,"}}}}`, i))
		}
		a.raw(`{"jsonrpc":"2.0","method":"_session/turn_ended","params":{}}`)
	case "dies":
		a.text("My last words.")
		a.out.Flush()
		panic("the agent dies")
	case "late": // the end of a tool call of the previous turn
		a.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": "left", "status": "completed", "rawOutput": "at last"})
	case "usage": // of the previous turn
		a.update(map[string]any{"sessionUpdate": "usage_update", "used": 12, "size": 100, "cost": map[string]any{"amount": 0.75, "currency": "USD"}})
	case "again": // starts another turn, until a cancel
		a.text("It is over.")
		a.raw(`{"jsonrpc":"2.0","method":"_session/turn_ended","params":{}}`)
		a.out.Flush()
		for a.read().Method != "session/cancel" {
		}
		a.text("It is cancelled.")
		a.raw(`{"jsonrpc":"2.0","method":"_session/turn_ended","params":{}}`)
	case "works": // until it is cancelled
		a.text("working")
		for a.read().Method != "session/cancel" {
		}
		a.text(", cancelled")
		a.raw(`{"jsonrpc":"2.0","method":"_session/turn_ended","params":{}}`)
	}
	a.out.Flush()
}

// beginTurns makes the hub start tasks for agent-initiated turns, with the ids own-1 and so on.
// It returns a function that waits for the result of one.
func (h *hub) beginTurns(t *testing.T, x func() *executor.Executor, like catalog.ExecutePromptParams) (result func(task string) catalog.ExecutePromptResult) {
	ended := make(map[string]catalog.ExecutePromptResult)
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	begun := 0
	h.begin = func(context.Context, catalog.BeginTurnParams) (catalog.BeginTurnResult, error) {
		begun++ // one session, one turn after the other
		p := like
		p.TaskID, p.SessionToken, p.Prompt, p.Unprompted = fmt.Sprint("own-", begun), fmt.Sprint("token-", begun), "", true
		running.Go(func() {
			r, err := x().ExecutePrompt(context.Background(), p)
			assert.NoError(t, err)
			h.Note(func() { ended[p.TaskID] = r })
		})
		return catalog.BeginTurnResult{TaskID: p.TaskID}, nil
	}
	return func(task string) catalog.ExecutePromptResult {
		h.Lock()
		defer h.Unlock()
		return ended[task]
	}
}

// ownTurns returns a hub that begins a task for each agent-initiated turn, an executor, and the
// function of beginTurns.
func ownTurns(t *testing.T, like catalog.ExecutePromptParams) (*hub, *executor.Executor, func(task string) catalog.ExecutePromptResult) {
	h := newHub()
	var x *executor.Executor
	results := h.beginTurns(t, func() *executor.Executor { return x }, like)
	x = newExecutor(t, h, executor.Options{})
	return h, x, results
}

// counts returns the numbers of requested agent-initiated turns and of ended tasks.
func (h *hub) counts() (begun, ended int) {
	h.Lock()
	defer h.Unlock()
	return len(h.turns), len(h.ends)
}

// said returns the agent's text in a task.
func (h *hub) said(task string) string {
	h.Lock()
	defer h.Unlock()
	var b strings.Builder
	for _, r := range h.reports {
		if r.TaskID == task && r.EventType == catalog.EventContentDelta {
			b.WriteString(deltaOf(r))
		}
	}
	return b.String()
}

func deltaOf(r catalog.ReportMessageParams) string {
	var d catalog.ContentDelta
	_ = json.Unmarshal(r.EventData, &d) // other events have no text
	return d.Delta.Text
}

// An agent's work after its turn is a separate turn, with the signals of any agent.
func TestAgentInitiatedTurns(t *testing.T) {
	const answer = `answer {"outcome":{"outcome":"selected","optionId":"y"}}`
	for name, c := range map[string]struct {
		styles string
		said   []string // in own-1, own-2, ...
		status string   // of the last; "" means completed
		asked  int
	}{
		"claude":     {styles: "claude", said: []string{"It is over. " + answer + " Done."}, asked: 1},
		"codex goal": {styles: "codex codex codex", said: []string{"Warning. word", "Warning. word", "Warning. word"}},
		"qwen":       {styles: "qwen", said: []string{"Completed. start_turn {}."}},
		"told":       {styles: "told told", said: []string{"It is over.", "It is over."}},
		"kimi":       {styles: "kimi", said: []string{""}, asked: 1},
		"dies":       {styles: "dies", said: []string{"My last words."}, status: catalog.StatusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := prompt(t, "plain", "own "+c.styles)
			p.Launch.QuietMS = 3_600_000
			if name == "kimi" { // only silence ends such a turn
				p.Launch.QuietMS = 50
			}
			h, x, results := ownTurns(t, p)
			completes(t, x, p)
			h.Await(t, func() bool { begun, ended := h.counts(); return begun == len(c.said) && ended == begun+1 }, "a task for each turn, and its end")
			assert.Empty(t, h.said("task-1"))
			for i, said := range c.said {
				assert.Equal(t, said, h.said(fmt.Sprint("own-", i+1)))
			}
			assert.Len(t, h.asked, c.asked)
			for _, q := range h.asked {
				assert.Equal(t, []string{"own-1", "token-1"}, []string{q.TaskID, q.SessionToken})
			}
			last := fmt.Sprint("own-", len(c.said))
			h.Await(t, func() bool { return results(last).Status != "" }, "the result of the last turn")
			want := c.status
			if want == "" {
				want = catalog.StatusCompleted
			}
			assert.Equal(t, want, results(last).Status)
			assert.Equal(t, []string{"s", "task-1"}, []string{h.turns[0].SessionID, h.turns[0].TaskID})
			if name == "qwen" {
				assert.Equal(t, &catalog.TurnTrigger{Kind: "background_task_completed", Label: "sleep 3"}, h.turns[0].Trigger)
			}
		})
	}
}

// A goal is background work from the end of the turn that has set it, over the turns that follow.
// It can be paused, and ends when no turn follows.
func TestAGoalIsBackgroundWork(t *testing.T) {
	goal := []domain.BackgroundTask{{ID: "goal", Kind: "goal", Title: "/goal codex codex", Stoppable: true}}
	for name, stop := range map[string]catalog.ReleaseSessionParams{"all": {Force: true}, "one": {Background: "goal"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := prompt(t, "plain", "/goal codex codex")
			p.Launch.QuietMS = 3_600_000
			h, x, _ := ownTurns(t, p)
			completes(t, x, p)
			h.Await(t, func() bool { begun, ended := h.counts(); return begun == 2 && ended == 3 }, "the turns of the goal")
			assert.Equal(t, goal, h.inBackground())
			assert.Equal(t, catalog.ReleaseSessionResult{Reason: "background"}, release(t, x, p.SessionID))
			stop.SessionID = p.SessionID
			assert.Equal(t, catalog.ReleaseSessionResult{Reason: "cancelled"}, must(x.ReleaseSession(context.Background(), stop))(t))
			assert.Empty(t, h.inBackground())
			assert.True(t, release(t, x, p.SessionID).Released)
		})
	}
	t.Run("reached", func(t *testing.T) {
		t.Parallel()
		h, x := hubAndExecutor(t)
		p := prompt(t, "plain", "/goal")
		p.Prompt, p.Launch.QuietMS = "/goal  ", 50
		execute(t, x, p)
		assert.Nil(t, h.inBackground(), "no goal was set")
		p.TaskID, p.Prompt = "task-2", "/goal codex"
		h, x, _ = ownTurns(t, p)
		completes(t, x, p)
		h.Await(t, func() bool { return h.inBackground() != nil && len(h.inBackground()) == 0 }, "the end of the goal")
	})
}

// A tool call that is still open at the end of its turn is background work, so the executor does
// not release the agent. Its later updates belong to its task and begin no turn.
func TestToolCallEndsAfterItsTurn(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "plain", "leaves")
	execute(t, x, p)
	h.Await(t, func() bool { return h.inBackground() != nil }, "the open tool call")
	assert.Equal(t, []domain.BackgroundTask{{ID: "left", Kind: "tool_call", Title: "Look into it"}}, h.inBackground())
	assert.Equal(t, catalog.ReleaseSessionResult{Reason: "background"}, release(t, x, p.SessionID))

	p.TaskID, p.Prompt = "task-2", "own late"
	execute(t, x, p)
	h.Await(t, func() bool { return h.inBackground() != nil && len(h.inBackground()) == 0 }, "the end of the tool call")
	h.Lock()
	late, begun := h.late, h.turns
	h.Unlock()
	assert.Equal(t, []catalog.ReportLateParams{{SessionID: "s", TaskID: "task-1", EventType: "tool_result", EventData: json.RawMessage(`{"tool_id":"left","status":"completed","result":"at last"}`)}}, late)
	assert.Empty(t, begun)
	assert.True(t, release(t, x, p.SessionID).Released)
}

// Usage that an agent reports between two turns counts for the last one, and begins no turn.
func TestUsageBetweenTwoTurns(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "plain", "own usage")
	execute(t, x, p)
	reported := func(n int) []string {
		h.Await(t, func() bool { return len(h.usages()) == n }, "the usage")
		return h.usages()
	}
	first := `task-1 {"input_tokens":0,"output_tokens":0,"context_used":12,"context_size":100,"cost_usd":0.75}`
	assert.Equal(t, []string{first}, reported(1))
	p.TaskID, p.Prompt = "task-2", "own usage"
	execute(t, x, p)
	// The second may come in its turn or after it.
	assert.ElementsMatch(t, []string{first, `task-2 {"input_tokens":0,"output_tokens":0,"context_used":12,"context_size":100}`}, reported(2), "the second has no further cost")
	h.Lock()
	defer h.Unlock()
	assert.Empty(t, h.turns)
}

// usages returns the usage reports, in turns and after them, by task.
func (h *hub) usages() (list []string) {
	h.Lock()
	defer h.Unlock()
	for _, r := range h.reports {
		if r.EventType == catalog.EventUsage {
			list = append(list, r.TaskID+" "+string(r.EventData))
		}
	}
	for _, r := range h.late {
		if r.EventType == catalog.EventUsage {
			list = append(list, r.TaskID+" "+string(r.EventData))
		}
	}
	slices.Sort(list) // by task
	return list
}

// inBackground returns the last report of background work; nil: there was none.
func (h *hub) inBackground() []domain.BackgroundTask {
	h.Lock()
	defer h.Unlock()
	for _, p := range slices.Backward(h.between) {
		if p.Session.Background != nil {
			return p.Session.Background
		}
	}
	return nil
}

// Updates after the answer to the prompt all belong to the next turn, in order.
func TestUpdatesBetweenTurnsAreKept(t *testing.T) {
	p := prompt(t, "plain", "own flood")
	h, x, _ := ownTurns(t, p)
	execute(t, x, p)
	h.Await(t, func() bool { _, ended := h.counts(); return ended == 2 }, "the end of the agent's own turn")
	var want strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&want, "%d,", i)
	}
	assert.Empty(t, h.said("task-1"))
	assert.Equal(t, want.String(), h.said("own-1"))
}

// StopTask cancels an agent-initiated turn like a prompted one.
func TestAgentInitiatedTurnIsCancelled(t *testing.T) {
	p := prompt(t, "plain", "own works")
	h, x, results := ownTurns(t, p)
	execute(t, x, p)
	h.Await(t, func() bool { return strings.Contains(h.text(), "working") }, "the agent's first text")
	assert.Equal(t, catalog.ReleaseSessionResult{Reason: "busy"}, release(t, x, p.SessionID))
	must(x.StopTask(context.Background(), catalog.StopTaskParams{TaskID: "own-1"}))(t)
	h.Await(t, func() bool { return results("own-1").Status != "" }, "the end of the turn")
	assert.Equal(t, catalog.StatusCancelled, results("own-1").Status)
	assert.Equal(t, "working, cancelled", h.said("own-1"))
	p.TaskID, p.Prompt = "task-2", "turn"
	execute(t, x, p)
	assert.Contains(t, h.said("task-2"), "turn 2 ", "the agent still runs")
}

// A stop just after the end of an agent-initiated turn cancels the next turn of the agent.
func TestStopAfterAnAgentInitiatedTurn(t *testing.T) {
	p := prompt(t, "plain", "own again")
	h, x, results := ownTurns(t, p)
	execute(t, x, p)
	h.Await(t, func() bool { return results("own-1").Status != "" }, "the end of the turn")
	must(x.StopTask(context.Background(), catalog.StopTaskParams{TaskID: "own-1"}))(t)
	h.Await(t, func() bool { return results("own-2").Status != "" }, "the agent's next turn")
	assert.Equal(t, "It is cancelled.", h.said("own-2"))
	p.TaskID, p.Prompt = "task-2", "turn"
	execute(t, x, p)
	assert.Contains(t, h.said("task-2"), "turn 2 ", "the agent still runs")
}

// If the hub refuses a turn, the executor still reads the agent's output and does not ask again.
func TestRefusedAgentInitiatedTurn(t *testing.T) {
	h := newHub()
	h.begin = func(context.Context, catalog.BeginTurnParams) (catalog.BeginTurnResult, error) {
		return catalog.BeginTurnResult{}, errors.New("no")
	}
	x := newExecutor(t, h, executor.Options{})
	p := prompt(t, "plain", "own told told")
	execute(t, x, p)
	h.Await(t, func() bool { begun, _ := h.counts(); return begun == 1 }, "the agent's own turn")
	p.TaskID, p.Prompt = "task-2", "turn"
	execute(t, x, p)
	assert.Contains(t, h.said("task-2"), "turn 2 ")
	assert.Len(t, h.turns, 1)
}

// settingsBetween returns the settings after all reports between turns.
func (h *hub) settingsBetween() (now catalog.Session) {
	h.Lock()
	defer h.Unlock()
	for _, p := range h.between {
		now.Mode, now.Info = cmp.Or(p.Session.Mode, now.Mode), cmp.Or(p.Session.Info, now.Info)
		if p.Session.Commands != nil {
			now.Commands = p.Session.Commands
		}
	}
	return now
}

// titled reports whether the session had that title.
func (h *hub) titled(title string) bool {
	h.Lock()
	defer h.Unlock()
	return slices.Contains(h.titles, title)
}

// The executor reports updates after a turn even while no prompt runs.
func TestReportsBetweenTurns(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "choosy", "later 1 gate")
	gate := namedPipe(t, p.CWD, "gate")
	completes(t, x, p)
	assert.Empty(t, h.settingsBetween())
	open, err := os.OpenFile(gate, os.O_WRONLY, 0) // the turn is over, and the agent waits for this
	require.NoError(t, err)
	defer open.Close()
	h.Await(t, func() bool { return h.settingsBetween().Mode != nil }, "the agent's mode")
	assert.Equal(t, catalog.Session{
		Mode:     &catalog.Selection{Current: "code", Choices: now(t, h).Mode.Choices},
		Commands: []domain.AgentCommand{{Name: "late"}}, Info: &domain.SessionInfo{Title: "000001"},
	}, h.settingsBetween())
	for _, p := range h.between {
		assert.Equal(t, []string{"s", "task-1"}, []string{p.SessionID, p.TaskID})
	}
}

// A session without an id ends with its prompt, so the executor reports nothing afterwards.
func TestNoReportsWithoutASession(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "choosy", "later 1000")
	p.SessionID = ""
	execute(t, x, p)
	x.Close(t.Context())
	assert.Empty(t, h.between)
}

// Reports between two turns precede the reports of the next turn.
func TestNextTurnFollowsEarlierReports(t *testing.T) {
	h, x := hubAndExecutor(t)
	for i := range 20 {
		p := prompt(t, "choosy", "later 50")
		p.CWD, p.Launch.Root = "/", "/" // so that the agent is the same
		p.TaskID = "task-" + strings.Repeat("i", i+1)
		require.Equal(t, catalog.StatusCompleted, execute(t, x, p).Status)
	}
	h.Await(t, func() bool { return h.titled("001000") }, "the last title")
	h.Lock()
	defer h.Unlock()
	assert.True(t, slices.IsSorted(h.titles), "%v", h.titles)
	for i := 1; i < len(h.between); i++ {
		assert.LessOrEqual(t, h.between[i-1].TaskID, h.between[i].TaskID)
	}
}
