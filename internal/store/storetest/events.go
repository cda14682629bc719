package storetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// payloads returns one of each stored kind with every field set, and some with none.
func payloads() []domain.Payload {
	text, yes := "a <b> & \u2028", true
	raw := json.RawMessage(`{"a":1.50,"a":"<b>","c":"\ud800"}`)
	details := toolDetails()
	return []domain.Payload{
		domain.TurnStateChanged{
			SessionUUID: "t", From: domain.Running, To: domain.Failed, ParentHumanLayerSession: "p", Title: text, Agent: "a", Reason: "r",
			Error: "e", ErrorCode: "C", StopReason: "s", SignIn: []domain.AuthMethod{{ID: "i", Name: "n <b>", Description: "d", Type: "agent"}, {}},
		},
		domain.TurnStateChanged{To: domain.Queued},
		domain.MessageDelta{Key: "k", Text: text},
		domain.MessageDelta{Key: "k", Thought: true, ParentID: "p"},
		domain.MessageDelta{Key: "k", Text: text, Meta: raw},
		domain.MessageAdded{
			NativeSession: "n", Type: "message", Key: "k", ParentID: "p", Role: "user", Text: text, Subtype: "s", Truncated: true,
		},
		domain.MessageAdded{Type: "message", Key: "k", Blocks: blocks(), Meta: raw},
		domain.ToolCallChanged{ID: "i", Details: &domain.ToolDetails{Blocks: blocks()}},
		domain.ToolCallChanged{
			NativeSession: "n", ID: "i", Name: "N", Title: text, ToolKind: "k", Status: "s", ParentID: "p", Input: raw, Details: &details,
			Ended: true, Result: text, Truncated: true,
		},
		domain.ToolCallChanged{ID: "i", Details: &domain.ToolDetails{}},
		domain.ApprovalRequested{
			ApprovalID: "a", CallID: "c", ToolUseID: "u", ParentID: "p", Type: "t", Tool: "T", Input: raw, ToolKind: "k", InputEditable: true,
			Ambiguity: "y", Title: text, Subject: "s",
			Options: options(), Paths: []string{"/p"}, Diffs: details.Diffs, Plan: "# p", Details: "d", TakesComment: true,
			Rule: &domain.RulePreview{Tool: "T", Covers: domain.CoversFiles, Pattern: "/p/*"}, Stale: true, Reopens: "r", Reopened: "w",
			Replayed: true, Truncated: true,
			Elicitation: domain.Elicitation{Mode: domain.ElicitURL, Schema: raw, URL: text, ID: "i"},
		},
		domain.ApprovalResolved{
			ApprovalID: "a", CallID: "c", ToolUseID: "u", Type: "t", Status: "s", Response: text, Comment: "c", Option: "o", DecidedBy: "d",
			Title: "t", Tool: "T", InputEdited: true, Explanation: "e",
		},
		domain.SettingsChanged{Title: &text, Mode: &text, Model: &text, AutoAcceptEdits: &yes, SkipPermissions: &yes, SkipUntil: time.Unix(
			7, 9,
		).UTC(), Archived: &yes, AdditionalDirectories: &[]string{text}, Reason: "r", Agent: &text},
		domain.SettingsChanged{},
		domain.NativeSessionChanged{NativeSession: "n", Replaced: true, Forked: true},
		domain.AgentModeChanged{Mode: "m", Modes: []string{"m", "n"}},
		domain.AgentModeChanged{Mode: "m", Modes: []string{"m"}, Choices: []domain.Choice{{ID: "m", Name: "M"}}},
		domain.AgentSessionChanged{AgentSession: agentSession(), Truncated: true},
		domain.AgentSessionChanged{AgentSession: domain.AgentSession{Options: []domain.AgentOption{}, Commands: []domain.AgentCommand{}}},
		domain.PlanChanged{Entries: []domain.PlanEntry{{Content: text, Priority: "p", Status: "s"}}},
		domain.UsageReported{
			InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, ContextUsed: 5, ContextSize: 6, CostUSD: 0.7, Meta: raw,
		},
		domain.FileChanged{Path: "/p", Diff: text, Added: 1, Removed: 2, Binary: true, Truncated: true},
		domain.QueueChanged{Text: &text, Order: []string{"s"}},
		domain.ChangeDecided{Path: "/p", Decision: "revert", Hunk: "h"},
		domain.ProgressReported{Report: raw},
		domain.AgentErrorReported{Report: raw},
		domain.AgentUpdated{Update: raw},
		domain.AgentSilent{Since: time.Unix(7, 0).UTC(), Note: "x", ToolID: "1", Tool: "y", Ended: true},
		domain.TriggerExecuted{
			Execution: 1, Trigger: "t", EventType: "e", Action: "a", Status: "s", Message: text, Channel: "c", Approval: "i", Error: "x",
		},
		domain.SessionDeleted{SessionUUID: "u", Turns: []domain.TurnRef{{HumanLayerSession: "s", HumanLayerRun: "r", Task: 1}}, Kept: 2},
		domain.BuildProgressed{
			BuildID: "b", Name: "n", Stage: "failed", Command: []string{"make"}, Duration: time.Second, Errors: 2, Warnings: 3, Reason: "r",
			Diagnostics: []domain.Diagnostic{{File: "f", Line: 1, Column: 2, Severity: "error", Message: "m", Source: "go"}},
		},
		domain.IterationStarted{Iteration: 1, MaxIterations: 2, Gates: []string{"make test"}},
		domain.GateStarted{Gate: "make test", Iteration: 1},
		domain.GateChecked{
			GateResult: domain.GateResult{
				Gate: "make test", Passed: true, Reason: "r", Errors: 2, Warnings: 3, Output: text, Duration: time.Second,
				Findings: []domain.Diagnostic{{File: "f", Line: 1, Column: 2, Severity: "error", Message: "m", Source: "go"}},
			},
			Iteration: 1, MaxIterations: 2,
		},
		domain.LoopEnded{State: "failed", Reason: "r", Iteration: 2, MaxIterations: 2, Failing: []string{"make test"}},
		domain.TerminalExited{TerminalID: "t", TaskID: "k", ExitCode: 3, Signal: "S"},
	}
}

// agentSession returns everything that an agent can report of its session, with every field set.
func agentSession() domain.AgentSession {
	raw := json.RawMessage(`{"_meta":{"a":1.50}}`)
	choices := []domain.Choice{{ID: "a", Name: "A <b>", Description: "d", Group: "g", Extra: raw}, {ID: "b"}}
	return domain.AgentSession{
		Agent: &domain.AgentInfo{Name: "n", Title: "t", Version: "v"}, Modes: &domain.Selection{Current: "a", Choices: choices},
		Models: &domain.Selection{},
		Options: []domain.AgentOption{{
			ID: "o", Name: "n", Description: "d", Category: "c", Type: "select", Current: "a", Choices: choices, Extra: raw,
		}},
		Commands:   []domain.AgentCommand{{Name: "n", Description: "d", InputHint: "h", Extra: raw}},
		Info:       &domain.SessionInfo{Title: "t", Updated: "u"},
		Background: []domain.BackgroundTask{{ID: "b", Kind: "process", Title: "sleep 3"}},
	}
}

func testEventRoundTrip(t *testing.T, k kind) {
	s := k.openNew(t)
	appended := AppendPayloads(t, s, AddTurn(t, s, NewSession(t, s, "").ID, domain.Queued))
	assert.Equal(t, appended, AllEvents(t, s))
}

// AppendPayloads appends an event of each kind to the log, and returns the events.
func AppendPayloads(t *testing.T, s store.Store, turn domain.Turn) (appended []domain.Event) {
	t.Helper()
	for _, p := range payloads() {
		e := turn.Event(p)
		if _, delta := p.(domain.MessageDelta); delta {
			e.Ref = domain.TurnRef{}
		}
		Write(t, s, func(tx store.Tx) (err error) {
			e.Time = time.Unix(0, tx.Now().UnixNano()).UTC()
			e.Seq, err = tx.Append(e)
			return err
		})
		appended = append(appended, e)
	}
	return appended
}

// blocks returns content of two kinds, one with every field set.
func blocks() []domain.Block {
	raw := json.RawMessage(`{"a":1.50}`)
	return []domain.Block{{
		Type: domain.BlockResource, MIMEType: "text/plain", Name: "n", Title: "t", Description: "d", URI: "file:///n", Attachment: "a", Size: 7,
		Binary:      true,
		Annotations: raw, Meta: raw,
	}, {Type: domain.BlockResourceLink, URI: "u"}}
}
