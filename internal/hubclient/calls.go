// Code generated from the registry of methods by `make generate`. DO NOT EDIT.

package hubclient

import (
	"context"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// ClientEnvironment calls client.environment. It also returns the result as it came.
func ClientEnvironment(ctx context.Context, c *client.Client, p protocol.ClientEnvironmentParams) (protocol.Success, json.RawMessage, error) {
	return Call[protocol.Success](ctx, c, "client.environment", p)
}

// UsageGet calls usage.get. It also returns the result as it came.
func UsageGet(ctx context.Context, c *client.Client, p protocol.UsageParams) (protocol.UsageResult, json.RawMessage, error) {
	return Call[protocol.UsageResult](ctx, c, "usage.get", p)
}

// TurnCount calls turn.count. It also returns the result as it came.
func TurnCount(ctx context.Context, c *client.Client) (protocol.TurnCounts, json.RawMessage, error) {
	return Call[protocol.TurnCounts](ctx, c, "turn.count", nil)
}

// DaemonStatus calls daemon.status. It also returns the result as it came.
func DaemonStatus(ctx context.Context, c *client.Client) (protocol.DaemonStatus, json.RawMessage, error) {
	return Call[protocol.DaemonStatus](ctx, c, "daemon.status", nil)
}

// DaemonListen calls daemon.listen. It also returns the result as it came.
func DaemonListen(ctx context.Context, c *client.Client, p protocol.ListenParams) (protocol.Success, json.RawMessage, error) {
	return Call[protocol.Success](ctx, c, "daemon.listen", p)
}

// SecretProvide calls secret.provide. It also returns the result as it came.
func SecretProvide(ctx context.Context, c *client.Client, p protocol.ProvideSecretParams) (protocol.Success, json.RawMessage, error) {
	return Call[protocol.Success](ctx, c, "secret.provide", p)
}

// DaemonStop calls daemon.stop. It also returns the result as it came.
func DaemonStop(ctx context.Context, c *client.Client, p protocol.StopDaemonParams) (protocol.StopDaemonResult, json.RawMessage, error) {
	return Call[protocol.StopDaemonResult](ctx, c, "daemon.stop", p)
}

// ProjectList calls project.list. It also returns the result as it came.
func ProjectList(ctx context.Context, c *client.Client) (protocol.ProjectList, json.RawMessage, error) {
	return Call[protocol.ProjectList](ctx, c, "project.list", nil)
}

// ProjectDirectories calls project.directories. It also returns the result as it came.
func ProjectDirectories(ctx context.Context, c *client.Client, p protocol.DirectoriesParams) (protocol.DirectoryList, json.RawMessage, error) {
	return Call[protocol.DirectoryList](ctx, c, "project.directories", p)
}

// ProjectKeep calls project.keep. It also returns the result as it came.
func ProjectKeep(ctx context.Context, c *client.Client, p protocol.KeepProjectParams) (protocol.KeptProject, json.RawMessage, error) {
	return Call[protocol.KeptProject](ctx, c, "project.keep", p)
}

// ProjectMove calls project.move. It also returns the result as it came.
func ProjectMove(ctx context.Context, c *client.Client, p protocol.MoveProjectParams) (protocol.MovedProject, json.RawMessage, error) {
	return Call[protocol.MovedProject](ctx, c, "project.move", p)
}

// ProjectForget calls project.forget. It also returns the result as it came.
func ProjectForget(ctx context.Context, c *client.Client, p protocol.ForgetProjectParams) (protocol.ForgottenProject, json.RawMessage, error) {
	return Call[protocol.ForgottenProject](ctx, c, "project.forget", p)
}

// TriggerList calls trigger.list. It also returns the result as it came.
func TriggerList(ctx context.Context, c *client.Client) (protocol.TriggerList, json.RawMessage, error) {
	return Call[protocol.TriggerList](ctx, c, "trigger.list", nil)
}

// TriggerEnable calls trigger.enable. It also returns the result as it came.
func TriggerEnable(ctx context.Context, c *client.Client, p protocol.TriggerParams) (protocol.TriggerSwitched, json.RawMessage, error) {
	return Call[protocol.TriggerSwitched](ctx, c, "trigger.enable", p)
}

// TriggerDisable calls trigger.disable. It also returns the result as it came.
func TriggerDisable(ctx context.Context, c *client.Client, p protocol.TriggerParams) (protocol.TriggerSwitched, json.RawMessage, error) {
	return Call[protocol.TriggerSwitched](ctx, c, "trigger.disable", p)
}

// TriggerLog calls trigger.log. It also returns the result as it came.
func TriggerLog(ctx context.Context, c *client.Client, p protocol.TriggerLogParams) (protocol.TriggerLog, json.RawMessage, error) {
	return Call[protocol.TriggerLog](ctx, c, "trigger.log", p)
}

// TriggerTest calls trigger.test. It also returns the result as it came.
func TriggerTest(ctx context.Context, c *client.Client, p protocol.TriggerTestParams) (protocol.TriggerTrials, json.RawMessage, error) {
	return Call[protocol.TriggerTrials](ctx, c, "trigger.test", p)
}

// EditorOffer calls editor.offer. It also returns the result as it came.
func EditorOffer(ctx context.Context, c *client.Client, p protocol.EditorOfferParams) (protocol.Success, json.RawMessage, error) {
	return Call[protocol.Success](ctx, c, "editor.offer", p)
}

// EditorSaved calls editor.saved. It also returns the result as it came.
func EditorSaved(ctx context.Context, c *client.Client, p protocol.EditorSavedParams) (protocol.Success, json.RawMessage, error) {
	return Call[protocol.Success](ctx, c, "editor.saved", p)
}

// EditorCall calls editor.call. It also returns the result as it came.
func EditorCall(ctx context.Context, c *client.Client, p protocol.EditorCallParams) (protocol.EditorCallResult, json.RawMessage, error) {
	return Call[protocol.EditorCallResult](ctx, c, "editor.call", p)
}

// TurnList calls turn.list. It also returns the result as it came.
func TurnList(ctx context.Context, c *client.Client, p protocol.ListTurnsParams) (protocol.TurnList, json.RawMessage, error) {
	return Call[protocol.TurnList](ctx, c, "turn.list", p)
}

// TurnGet calls turn.get. It also returns the result as it came.
func TurnGet(ctx context.Context, c *client.Client, p protocol.TurnParams) (protocol.TurnResult, json.RawMessage, error) {
	return Call[protocol.TurnResult](ctx, c, "turn.get", p)
}

// TurnWait calls turn.wait. It also returns the result as it came.
func TurnWait(ctx context.Context, c *client.Client, p protocol.TurnParams) (protocol.TurnResult, json.RawMessage, error) {
	return Call[protocol.TurnResult](ctx, c, "turn.wait", p)
}

// TurnInterrupt calls turn.interrupt. It also returns the result as it came.
func TurnInterrupt(ctx context.Context, c *client.Client, p protocol.InterruptTurnParams) (protocol.InterruptTurnResult, json.RawMessage, error) {
	return Call[protocol.InterruptTurnResult](ctx, c, "turn.interrupt", p)
}

// TurnEdit calls turn.edit. It also returns the result as it came.
func TurnEdit(ctx context.Context, c *client.Client, p protocol.EditTurnParams) (protocol.QueuedTurns, json.RawMessage, error) {
	return Call[protocol.QueuedTurns](ctx, c, "turn.edit", p)
}

// TurnMove calls turn.move. It also returns the result as it came.
func TurnMove(ctx context.Context, c *client.Client, p protocol.MoveTurnParams) (protocol.QueuedTurns, json.RawMessage, error) {
	return Call[protocol.QueuedTurns](ctx, c, "turn.move", p)
}

// AttemptStart calls attempt.start. It also returns the result as it came.
func AttemptStart(ctx context.Context, c *client.Client, p protocol.StartAttemptsParams) (protocol.StartAttemptsResult, json.RawMessage, error) {
	return Call[protocol.StartAttemptsResult](ctx, c, "attempt.start", p)
}

// AttemptList calls attempt.list. It also returns the result as it came.
func AttemptList(ctx context.Context, c *client.Client, p protocol.AttemptsParams) (protocol.AttemptsResult, json.RawMessage, error) {
	return Call[protocol.AttemptsResult](ctx, c, "attempt.list", p)
}

// AttemptChoose calls attempt.choose. It also returns the result as it came.
func AttemptChoose(ctx context.Context, c *client.Client, p protocol.ChooseAttemptParams) (protocol.ChooseAttemptResult, json.RawMessage, error) {
	return Call[protocol.ChooseAttemptResult](ctx, c, "attempt.choose", p)
}

// SessionStart calls session.start. It also returns the result as it came.
func SessionStart(ctx context.Context, c *client.Client, p protocol.StartParams) (protocol.Started, json.RawMessage, error) {
	return Call[protocol.Started](ctx, c, "session.start", p)
}

// SessionPrompt calls session.prompt. It also returns the result as it came.
func SessionPrompt(ctx context.Context, c *client.Client, p protocol.PromptParams) (protocol.Started, json.RawMessage, error) {
	return Call[protocol.Started](ctx, c, "session.prompt", p)
}

// SessionFork calls session.fork. It also returns the result as it came.
func SessionFork(ctx context.Context, c *client.Client, p protocol.ForkParams) (protocol.Started, json.RawMessage, error) {
	return Call[protocol.Started](ctx, c, "session.fork", p)
}

// SessionList calls session.list. It also returns the result as it came.
func SessionList(ctx context.Context, c *client.Client, p protocol.SessionListParams) (protocol.SessionsResult, json.RawMessage, error) {
	return Call[protocol.SessionsResult](ctx, c, "session.list", p)
}

// SessionGet calls session.get. It also returns the result as it came.
func SessionGet(ctx context.Context, c *client.Client, p protocol.SessionRefParams) (protocol.GetSessionResult, json.RawMessage, error) {
	return Call[protocol.GetSessionResult](ctx, c, "session.get", p)
}

// SessionSet calls session.set. It also returns the result as it came.
func SessionSet(ctx context.Context, c *client.Client, p protocol.SetSessionParams) (protocol.SetSessionResult, json.RawMessage, error) {
	return Call[protocol.SetSessionResult](ctx, c, "session.set", p)
}

// SessionRename calls session.rename. It also returns the result as it came.
func SessionRename(ctx context.Context, c *client.Client, p protocol.RenameSessionParams) (protocol.Empty, json.RawMessage, error) {
	return Call[protocol.Empty](ctx, c, "session.rename", p)
}

// SessionArchive calls session.archive. It also returns the result as it came.
func SessionArchive(ctx context.Context, c *client.Client, p protocol.ArchiveSessionsParams) (protocol.ArchiveSessionsResult, json.RawMessage, error) {
	return Call[protocol.ArchiveSessionsResult](ctx, c, "session.archive", p)
}

// SessionDelete calls session.delete. It also returns the result as it came.
func SessionDelete(ctx context.Context, c *client.Client, p protocol.SessionRefParams) (protocol.DeleteSessionResult, json.RawMessage, error) {
	return Call[protocol.DeleteSessionResult](ctx, c, "session.delete", p)
}

// SessionLand calls session.land. It also returns the result as it came.
func SessionLand(ctx context.Context, c *client.Client, p protocol.LandParams) (protocol.LandResult, json.RawMessage, error) {
	return Call[protocol.LandResult](ctx, c, "session.land", p)
}

// SessionSave calls session.save. It also returns the result as it came.
func SessionSave(ctx context.Context, c *client.Client, p protocol.SaveParams) (protocol.SaveResult, json.RawMessage, error) {
	return Call[protocol.SaveResult](ctx, c, "session.save", p)
}

// SessionDiscard calls session.discard. It also returns the result as it came.
func SessionDiscard(ctx context.Context, c *client.Client, p protocol.DiscardParams) (protocol.DiscardResult, json.RawMessage, error) {
	return Call[protocol.DiscardResult](ctx, c, "session.discard", p)
}

// AgentDescribe calls agent.describe. It also returns the result as it came.
func AgentDescribe(ctx context.Context, c *client.Client, p protocol.DescribeAgentParams) (protocol.AgentDescription, json.RawMessage, error) {
	return Call[protocol.AgentDescription](ctx, c, "agent.describe", p)
}

// AgentList calls agent.list. It also returns the result as it came.
func AgentList(ctx context.Context, c *client.Client) (protocol.AgentList, json.RawMessage, error) {
	return Call[protocol.AgentList](ctx, c, "agent.list", nil)
}

// AgentCheck calls agent.check. It also returns the result as it came.
func AgentCheck(ctx context.Context, c *client.Client, p protocol.AgentParams) (protocol.SignInStatus, json.RawMessage, error) {
	return Call[protocol.SignInStatus](ctx, c, "agent.check", p)
}

// AgentLogin calls agent.login. It also returns the result as it came.
func AgentLogin(ctx context.Context, c *client.Client, p protocol.AuthenticateParams) (protocol.Success, json.RawMessage, error) {
	return Call[protocol.Success](ctx, c, "agent.login", p)
}

// AgentLogout calls agent.logout. It also returns the result as it came.
func AgentLogout(ctx context.Context, c *client.Client, p protocol.AgentParams) (protocol.Success, json.RawMessage, error) {
	return Call[protocol.Success](ctx, c, "agent.logout", p)
}

// AgentSessions calls agent.sessions. It also returns the result as it came.
func AgentSessions(ctx context.Context, c *client.Client, p protocol.NativeSessionListParams) (protocol.NativeSessionList, json.RawMessage, error) {
	return Call[protocol.NativeSessionList](ctx, c, "agent.sessions", p)
}

// SessionAdopt calls session.adopt. It also returns the result as it came.
func SessionAdopt(ctx context.Context, c *client.Client, p protocol.AdoptParams) (protocol.AdoptResult, json.RawMessage, error) {
	return Call[protocol.AdoptResult](ctx, c, "session.adopt", p)
}

// AgentForget calls agent.forget. It also returns the result as it came.
func AgentForget(ctx context.Context, c *client.Client, p protocol.NativeSessionDeleteParams) (protocol.Success, json.RawMessage, error) {
	return Call[protocol.Success](ctx, c, "agent.forget", p)
}

// BuildRun calls build.run. It also returns the result as it came.
func BuildRun(ctx context.Context, c *client.Client, p protocol.RunBuildParams) (protocol.BuildResult, json.RawMessage, error) {
	return Call[protocol.BuildResult](ctx, c, "build.run", p)
}

// BuildList calls build.list. It also returns the result as it came.
func BuildList(ctx context.Context, c *client.Client) (protocol.BuildList, json.RawMessage, error) {
	return Call[protocol.BuildList](ctx, c, "build.list", nil)
}

// GateList calls gate.list. It also returns the result as it came.
func GateList(ctx context.Context, c *client.Client) (protocol.GateList, json.RawMessage, error) {
	return Call[protocol.GateList](ctx, c, "gate.list", nil)
}

// GateCheck calls gate.check. It also returns the result as it came.
func GateCheck(ctx context.Context, c *client.Client, p protocol.CheckGateParams) (protocol.GateResult, json.RawMessage, error) {
	return Call[protocol.GateResult](ctx, c, "gate.check", p)
}

// SessionItems calls session.items. It also returns the result as it came.
func SessionItems(ctx context.Context, c *client.Client, p protocol.ItemsParams) (protocol.ItemList, json.RawMessage, error) {
	return Call[protocol.ItemList](ctx, c, "session.items", p)
}

// SessionSearch calls session.search. It also returns the result as it came.
func SessionSearch(ctx context.Context, c *client.Client, p protocol.SearchParams) (protocol.SearchResult, json.RawMessage, error) {
	return Call[protocol.SearchResult](ctx, c, "session.search", p)
}

// SessionExport calls session.export. It also returns the result as it came.
func SessionExport(ctx context.Context, c *client.Client, p protocol.ExportParams) (protocol.Exported, json.RawMessage, error) {
	return Call[protocol.Exported](ctx, c, "session.export", p)
}

// ChangeList calls change.list. It also returns the result as it came.
func ChangeList(ctx context.Context, c *client.Client, p protocol.TurnParams) (protocol.ChangeList, json.RawMessage, error) {
	return Call[protocol.ChangeList](ctx, c, "change.list", p)
}

// ChangeAccept calls change.accept. It also returns the result as it came.
func ChangeAccept(ctx context.Context, c *client.Client, p protocol.ChangeParams) (protocol.DecidedChange, json.RawMessage, error) {
	return Call[protocol.DecidedChange](ctx, c, "change.accept", p)
}

// ChangeRevert calls change.revert. It also returns the result as it came.
func ChangeRevert(ctx context.Context, c *client.Client, p protocol.ChangeParams) (protocol.DecidedChange, json.RawMessage, error) {
	return Call[protocol.DecidedChange](ctx, c, "change.revert", p)
}

// ChangeReopen calls change.reopen. It also returns the result as it came.
func ChangeReopen(ctx context.Context, c *client.Client, p protocol.ChangeParams) (protocol.DecidedChange, json.RawMessage, error) {
	return Call[protocol.DecidedChange](ctx, c, "change.reopen", p)
}

// SessionRewind calls session.rewind. It also returns the result as it came.
func SessionRewind(ctx context.Context, c *client.Client, p protocol.RewindParams) (protocol.RewindResult, json.RawMessage, error) {
	return Call[protocol.RewindResult](ctx, c, "session.rewind", p)
}

// AttachmentGet calls attachment.get. It also returns the result as it came.
func AttachmentGet(ctx context.Context, c *client.Client, p protocol.AttachmentParams) (protocol.AttachmentResult, json.RawMessage, error) {
	return Call[protocol.AttachmentResult](ctx, c, "attachment.get", p)
}

// ApprovalList calls approval.list. It also returns the result as it came.
func ApprovalList(ctx context.Context, c *client.Client, p protocol.ApprovalListParams) (protocol.ApprovalList, json.RawMessage, error) {
	return Call[protocol.ApprovalList](ctx, c, "approval.list", p)
}

// ApprovalGet calls approval.get. It also returns the result as it came.
func ApprovalGet(ctx context.Context, c *client.Client, p protocol.ApprovalParams) (protocol.ApprovalResult, json.RawMessage, error) {
	return Call[protocol.ApprovalResult](ctx, c, "approval.get", p)
}

// ApprovalCreate calls approval.create. It also returns the result as it came.
func ApprovalCreate(ctx context.Context, c *client.Client, p protocol.CreateApprovalParams) (protocol.ApprovalResult, json.RawMessage, error) {
	return Call[protocol.ApprovalResult](ctx, c, "approval.create", p)
}

// ApprovalDecide calls approval.decide. It also returns the result as it came.
func ApprovalDecide(ctx context.Context, c *client.Client, p protocol.DecisionParams) (protocol.DecisionResult, json.RawMessage, error) {
	return Call[protocol.DecisionResult](ctx, c, "approval.decide", p)
}

// RuleList calls rule.list. It also returns the result as it came.
func RuleList(ctx context.Context, c *client.Client) (protocol.RuleList, json.RawMessage, error) {
	return Call[protocol.RuleList](ctx, c, "rule.list", nil)
}

// RuleDelete calls rule.delete. It also returns the result as it came.
func RuleDelete(ctx context.Context, c *client.Client, p protocol.DeleteRuleParams) (protocol.DeleteRuleResult, json.RawMessage, error) {
	return Call[protocol.DeleteRuleResult](ctx, c, "rule.delete", p)
}

// ApprovalAsk calls approval.ask. It also returns the result as it came.
func ApprovalAsk(ctx context.Context, c *client.Client, p protocol.AskParams) (protocol.Answer, json.RawMessage, error) {
	return Call[protocol.Answer](ctx, c, "approval.ask", p)
}

// ApprovalRequest calls approval.request. It also returns the result as it came.
func ApprovalRequest(ctx context.Context, c *client.Client, p protocol.RequestParams) (protocol.Permission, json.RawMessage, error) {
	return Call[protocol.Permission](ctx, c, "approval.request", p)
}

// McpServers calls mcp.servers. It also returns the result as it came.
func McpServers(ctx context.Context, c *client.Client, p protocol.MCPServerOwner) (protocol.MCPServerList, json.RawMessage, error) {
	return Call[protocol.MCPServerList](ctx, c, "mcp.servers", p)
}

// McpTools calls mcp.tools. It also returns the result as it came.
func McpTools(ctx context.Context, c *client.Client, p protocol.MCPServerName) (protocol.MCPToolList, json.RawMessage, error) {
	return Call[protocol.MCPToolList](ctx, c, "mcp.tools", p)
}

// McpCall calls mcp.call. It also returns the result as it came.
func McpCall(ctx context.Context, c *client.Client, p protocol.CallToolParams) (protocol.CallToolResult, json.RawMessage, error) {
	return Call[protocol.CallToolResult](ctx, c, "mcp.call", p)
}

// PreviewFetch calls preview.fetch. It also returns the result as it came.
func PreviewFetch(ctx context.Context, c *client.Client, p protocol.PreviewParams) (protocol.PreviewFile, json.RawMessage, error) {
	return Call[protocol.PreviewFile](ctx, c, "preview.fetch", p)
}

// PreviewNavigate calls preview.navigate. It also returns the result as it came.
func PreviewNavigate(ctx context.Context, c *client.Client, p protocol.PreviewParams) (protocol.PreviewShown, json.RawMessage, error) {
	return Call[protocol.PreviewShown](ctx, c, "preview.navigate", p)
}

// PreviewRefresh calls preview.refresh. It also returns the result as it came.
func PreviewRefresh(ctx context.Context, c *client.Client) (protocol.PreviewShown, json.RawMessage, error) {
	return Call[protocol.PreviewShown](ctx, c, "preview.refresh", nil)
}

// PreviewConsole calls preview.console. It also returns the result as it came.
func PreviewConsole(ctx context.Context, c *client.Client, p protocol.ConsoleParams) (protocol.PreviewKept, json.RawMessage, error) {
	return Call[protocol.PreviewKept](ctx, c, "preview.console", p)
}

// PreviewError calls preview.error. It also returns the result as it came.
func PreviewError(ctx context.Context, c *client.Client, p protocol.PageErrorParams) (protocol.PreviewKept, json.RawMessage, error) {
	return Call[protocol.PreviewKept](ctx, c, "preview.error", p)
}

// PreviewNavigated calls preview.navigated. It also returns the result as it came.
func PreviewNavigated(ctx context.Context, c *client.Client, p protocol.NavigationParams) (protocol.PreviewKept, json.RawMessage, error) {
	return Call[protocol.PreviewKept](ctx, c, "preview.navigated", p)
}

// PreviewMessages calls preview.messages. It also returns the result as it came.
func PreviewMessages(ctx context.Context, c *client.Client, p protocol.PageMessagesParams) (protocol.PageMessages, json.RawMessage, error) {
	return Call[protocol.PageMessages](ctx, c, "preview.messages", p)
}

// EventSubscribe calls event.subscribe. It also returns the result as it came.
func EventSubscribe(ctx context.Context, c *client.Client, p protocol.SubscribeParams) (protocol.SubscribeResult, json.RawMessage, error) {
	return Call[protocol.SubscribeResult](ctx, c, "event.subscribe", p)
}

// EventUnsubscribe calls event.unsubscribe. It also returns the result as it came.
func EventUnsubscribe(ctx context.Context, c *client.Client, p protocol.UnsubscribeParams) (protocol.Success, json.RawMessage, error) {
	return Call[protocol.Success](ctx, c, "event.unsubscribe", p)
}

// TerminalStart calls terminal.start. It also returns the result as it came.
func TerminalStart(ctx context.Context, c *client.Client, p protocol.StartTerminalParams) (protocol.StartTerminalResult, json.RawMessage, error) {
	return Call[protocol.StartTerminalResult](ctx, c, "terminal.start", p)
}

// TerminalList calls terminal.list. It also returns the result as it came.
func TerminalList(ctx context.Context, c *client.Client) (protocol.TerminalList, json.RawMessage, error) {
	return Call[protocol.TerminalList](ctx, c, "terminal.list", nil)
}

// TerminalAttach calls terminal.attach. It also returns the result as it came.
func TerminalAttach(ctx context.Context, c *client.Client, p protocol.AttachTerminalParams) (protocol.AttachTerminalResult, json.RawMessage, error) {
	return Call[protocol.AttachTerminalResult](ctx, c, "terminal.attach", p)
}

// TerminalDetach calls terminal.detach. It also returns the result as it came.
func TerminalDetach(ctx context.Context, c *client.Client, p protocol.CloseTerminalParams) (protocol.DetachTerminalResult, json.RawMessage, error) {
	return Call[protocol.DetachTerminalResult](ctx, c, "terminal.detach", p)
}

// TerminalWrite calls terminal.write. It also returns the result as it came.
func TerminalWrite(ctx context.Context, c *client.Client, p protocol.WriteTerminalParams) (protocol.Success, json.RawMessage, error) {
	return Call[protocol.Success](ctx, c, "terminal.write", p)
}

// TerminalResize calls terminal.resize. It also returns the result as it came.
func TerminalResize(ctx context.Context, c *client.Client, p protocol.ResizeTerminalParams) (protocol.Success, json.RawMessage, error) {
	return Call[protocol.Success](ctx, c, "terminal.resize", p)
}

// TerminalClose calls terminal.close. It also returns the result as it came.
func TerminalClose(ctx context.Context, c *client.Client, p protocol.CloseTerminalParams) (protocol.CloseTerminalResult, json.RawMessage, error) {
	return Call[protocol.CloseTerminalResult](ctx, c, "terminal.close", p)
}

// untilDone are the methods that last as long as a person, an agent, git or another program does.
var untilDone = []string{
	"daemon.listen",
	"project.list",
	"project.keep",
	"project.move",
	"project.forget",
	"editor.call",
	"turn.wait",
	"attempt.start",
	"attempt.list",
	"attempt.choose",
	"session.start",
	"session.set",
	"session.delete",
	"session.land",
	"session.save",
	"session.discard",
	"agent.check",
	"agent.login",
	"agent.logout",
	"agent.sessions",
	"session.adopt",
	"agent.forget",
	"build.run",
	"gate.check",
	"session.search",
	"session.export",
	"change.list",
	"change.accept",
	"change.revert",
	"change.reopen",
	"session.rewind",
	"approval.list",
	"approval.get",
	"approval.ask",
	"approval.request",
	"mcp.tools",
	"mcp.call",
	"preview.fetch",
	"preview.navigate",
	"terminal.start",
	"terminal.attach",
	"terminal.detach",
}
