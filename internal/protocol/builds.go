package protocol

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

type BuildParams struct {
	Name string `json:"name,omitempty" doc:"One of listBuilds; absent: the first one."`
}

// A BuildTarget is a build of the project.
type BuildTarget struct {
	Name      string   `json:"name"`
	Command   []string `json:"command" doc:"The program and its arguments."`
	Directory string   `json:"directory,omitempty" doc:"In which it runs, relative to the project's; absent: that."`
	Backend   bool     `json:"backend" doc:"buildBackend builds it."`
	Detected  bool     `json:"detected" doc:"The project's files suggest it; it is not configured."`
}

type BuildList struct {
	Builds []BuildTarget `json:"builds"`
}

// A BuildResult is a build that has succeeded.
type BuildResult struct {
	Success    bool                `json:"success"`
	BuildID    string              `json:"build_id"`
	Name       string              `json:"name"`
	Command    []string            `json:"command"`
	DurationMS int64               `json:"duration_ms"`
	Warnings   []domain.Diagnostic `json:"warnings" doc:"What was said to be wrong; at most a thousand."`
}

// A BuildFailure is the data of the error of a build that has failed.
type BuildFailure struct {
	Kind        string              `json:"kind"`
	BuildID     string              `json:"build_id"`
	Name        string              `json:"name"`
	Command     []string            `json:"command"`
	DurationMS  int64               `json:"duration_ms"`
	ExitCode    int                 `json:"exit_code"`
	Signal      string              `json:"signal,omitempty"`
	TimedOut    bool                `json:"timed_out,omitempty"`
	Diagnostics []domain.Diagnostic `json:"diagnostics"`
	Output      string              `json:"output"` // the end of it
}

// Stages in BuildProgress. Others are ends.
const (
	BuildWaiting = "waiting"
	BuildStarted = domain.BuildStarted
	BuildOutput  = "output"
)

// BuildProgress is the notification buildProgress.
type BuildProgress struct {
	BuildID   string   `json:"build_id"`
	Name      string   `json:"name"`
	Stage     string   `json:"stage"`
	Command   []string `json:"command,omitempty"`
	Directory string   `json:"directory,omitempty"`
	Output    string   `json:"output,omitempty"`
}

// BuildWarning is the notification buildWarning.
type BuildWarning struct {
	BuildID string `json:"build_id"`
	Name    string `json:"name"`
	domain.Diagnostic
}

// A GateDefinition is a gate of the configuration, as clients see it.
type GateDefinition struct {
	Name      string   `json:"name"`
	Command   []string `json:"command" doc:"The program and its arguments."`
	Directory string   `json:"directory,omitempty" doc:"In which it runs, relative to where the agent works; absent: that."`
}

type GateList struct {
	Gates   []GateDefinition `json:"gates"`
	Waiting []string         `json:"waiting" doc:"Those of a project's file that its user does not trust yet: duet-rpc trust."`
}

type CheckGateParams struct {
	Gate string `json:"gate" doc:"The name of a gate of the configuration, or a line for the shell."`
}

// GateProgress is the notification gateProgress.
type GateProgress struct {
	Gate   string `json:"gate"`
	Output string `json:"output"`
}

// Gated are the parameters that ask for gates.
type Gated struct {
	Gates         []string `json:"gates,omitempty" doc:"Commands that have to succeed (\"Gates\"): names of [[gates]] of the configuration, or lines for the shell. They run where the agent works after each turn that completes; what fails is the next prompt of the conversation."`
	MaxIterations int      `json:"max_iterations,omitempty" doc:"With gates: how many turns there may be, 5 unless told, 100 at most."`
}

// Gates is the state of work that has gates.
type Gates struct {
	State         string       `json:"state" doc:"working, checking (the gates run), passed, failed, or stopped: a turn failed or somebody ended it."`
	Reason        string       `json:"reason,omitempty" doc:"Why it failed or was stopped."`
	Iteration     int          `json:"iteration" doc:"Which turn it is, or was the last, from 1."`
	MaxIterations int          `json:"max_iterations"`
	Gates         []string     `json:"gates"`
	Failing       []string     `json:"failing" doc:"Those that did not pass when they were checked last."`
	Results       []GateResult `json:"results,omitempty" doc:"What came of each when they were checked last. Not in lists."`
	SessionID     string       `json:"session_id" doc:"The session of that turn."`
	TaskID        string       `json:"task_id" doc:"The same under its name as a task."`
}

type PreviewParams struct {
	URL    string `json:"url" doc:"A path, with a query if need be."`
	Origin string `json:"origin,omitempty" doc:"Where the client shows the preview, such as http://127.0.0.1:8080: whole URLs that begin so are paths, too."`
}

type PreviewFile struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body" doc:"In base64. What does not fit into a message is the error -32005: of frames files of 6 MiB fit, of lines those of 700 KiB."`
}

type PreviewShown struct {
	URL   string `json:"url,omitempty" doc:"As clients are told it."`
	Shown int    `json:"shown" doc:"How many clients were told."`
}

// PreviewSession is the session of a page's message.
type PreviewSession struct {
	SessionID string `json:"session_id,omitempty" doc:"A session that it is kept with, by any id; absent: the one that was begun last."`
}

type ConsoleParams struct {
	Level   string            `json:"level,omitempty" doc:"log, debug, info, warn or error; absent: log."`
	Message string            `json:"message,omitempty" doc:"What was written, as one text."`
	Args    []json.RawMessage `json:"args,omitempty" doc:"What was written, where there is no message: texts as they are, other values as JSON."`
	URL     string            `json:"url,omitempty" doc:"Of the page."`
	Line    int               `json:"line,omitempty" doc:"Of the script; 1 is the first."`
	Column  int               `json:"column,omitempty" doc:"Within the line; 1 is the first."`
	PreviewSession
}

type PageErrorParams struct {
	Message string `json:"message" doc:"What is wrong."`
	Stack   string `json:"stack,omitempty" doc:"Where it was, line by line."`
	URL     string `json:"url,omitempty" doc:"Of the script, or the page."`
	Source  string `json:"source,omitempty" doc:"The same under another name."`
	Line    int    `json:"line,omitempty" doc:"1 is the first."`
	Column  int    `json:"column,omitempty" doc:"Within the line; 1 is the first."`
	PreviewSession
}

type NavigationParams struct {
	URL   string `json:"url" doc:"Where the page is now."`
	Title string `json:"title,omitempty" doc:"Of the page."`
	PreviewSession
}

type PreviewKept struct {
	Kept bool `json:"kept" doc:"Not, where pages say too much."`
}

type PageMessagesParams struct {
	SessionID string `json:"session_id,omitempty" doc:"Only what is kept with a session, or with a conversation, by any id."`
	Problems  bool   `json:"problems,omitempty" doc:"Only errors, and what was written to the console at the levels warn and error."`
	AfterID   int64  `json:"after_id,omitempty" doc:"Only messages with a higher id."`
	Limit     uint   `json:"limit,omitempty" doc:"The last ones; absent: 100, 1000 at most."`
	Follow    *bool  `json:"follow,omitempty" doc:"Whether the connection is told what pages say from now on, by notifications pageMessage, which are as the messages here; absent: as before. One that was told already comes again when it was said again."`
}

// A PageMessage is a message of a preview's page.
type PageMessage struct {
	ID        int64  `json:"id"`
	Kind      string `json:"kind" doc:"console, error or navigation."`
	Level     string `json:"level,omitempty" doc:"Of console: log, debug, info, warn or error."`
	Message   string `json:"message" doc:"Of navigation: the title of the page."`
	URL       string `json:"url,omitempty"`
	Line      int    `json:"line,omitempty"`
	Column    int    `json:"column,omitempty"`
	Stack     string `json:"stack,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	Count     int    `json:"count" doc:"How often it was said, one after the other."`
	Time      string `json:"time" doc:"When it was said last."`
}

type PageMessages struct {
	Messages []PageMessage `json:"messages"`
}

type AutomationStatus struct {
	Enabled          bool               `json:"enabled" doc:"As a whole."`
	RuleCount        int                `json:"ruleCount"`
	Rules            []Trigger          `json:"rules"`
	RecentExecutions []TriggerExecution `json:"recentExecutions" doc:"The last 10, the newest last."`
	Problem          string             `json:"problem,omitempty" doc:"Why no trigger does anything."`
	Issues           []string           `json:"issues,omitempty" doc:"What triggers are not told, and what to do: the system lets no more directories be watched."`
}

type Trigger struct {
	ID               string               `json:"id"`
	Trigger          TriggerEvent         `json:"trigger" doc:"What it is for."`
	Action           domain.TriggerAction `json:"action" doc:"What it does."`
	Enabled          bool                 `json:"enabled"`
	CooldownMs       int64                `json:"cooldownMs"`
	RequiresApproval bool                 `json:"requiresApproval" doc:"A person is asked first."`
	Description      string               `json:"description,omitempty"`
	Conditions       []TriggerCondition   `json:"conditions,omitempty"`
	When             string               `json:"when" doc:"What it is for, in words."`
	LastFired        string               `json:"lastFired,omitempty" doc:"When it did something last."`
	NextFire         string               `json:"nextFire,omitempty" doc:"When its time comes."`
	From             string               `json:"from" doc:"Whose configuration it stands in: user or project."`
	File             string               `json:"file,omitempty"`
	Line             int                  `json:"line,omitempty"`
}

type TriggerEvent struct {
	Type       string   `json:"type,omitempty"`
	Source     string   `json:"source,omitempty"`
	Pattern    string   `json:"pattern,omitempty"`
	Cron       string   `json:"cron,omitempty"`
	TimeZone   string   `json:"time_zone,omitempty"`
	Paths      []string `json:"paths,omitempty"`
	Extensions []string `json:"extensions,omitempty"`
	Ignore     []string `json:"ignore,omitempty"`
}

type TriggerCondition struct {
	Field    string `json:"field"`
	Operator string `json:"operator"`
	Value    any    `json:"value,omitempty"`
}

type TriggerExecution struct {
	ID         int64           `json:"id"`
	RuleID     string          `json:"ruleId"`
	EventType  string          `json:"eventType"`
	Status     string          `json:"status" doc:"submitted, notified, webhook_sent, denied, skipped_no_approver, unknown_action_type, error, waiting_approval, sending, depth_limited or rate_limited."`
	Timestamp  string          `json:"timestamp"`
	Action     string          `json:"action"`
	TaskID     string          `json:"taskId,omitempty" doc:"Of the session that was begun, or that has the question."`
	SessionID  string          `json:"session_id,omitempty"`
	ApprovalID string          `json:"approval_id,omitempty"`
	Error      string          `json:"error,omitempty"`
	Depth      int             `json:"depth,omitempty" doc:"How many sessions in a row triggers had begun before."`
	Does       json.RawMessage `json:"does,omitempty" doc:"The action with what the event has in the place of its templates."`
	Event      json.RawMessage `json:"event,omitempty"`
}

type AutomationParams struct {
	RuleID string `json:"ruleId,omitempty" doc:"One trigger; absent: all as a whole."`
}

type AutomationSwitched struct {
	Enabled bool   `json:"enabled" doc:"The trigger, or all as a whole."`
	Success bool   `json:"success" doc:"False: there is no such trigger."`
	RuleID  string `json:"ruleId,omitempty"`
}

type AutomationLogParams struct {
	RuleID string `json:"ruleId,omitempty" doc:"One trigger; absent: all."`
	Limit  *uint  `json:"limit,omitempty" doc:"How many; 50 unless told, 500 at most."`
}

type AutomationLogResult struct {
	Executions []TriggerExecution `json:"executions"`
}

type AutomationTestParams struct {
	Type    string          `json:"type" doc:"Such as run.failed or file.modify."`
	Source  string          `json:"source" doc:"watch, schedule, run or approval."`
	Payload json.RawMessage `json:"payload,omitempty" doc:"An object: what the event has besides."`
}

type AutomationTestResult struct {
	Rules []AutomationTrial `json:"rules"`
}

type AutomationTrial struct {
	RuleID string                `json:"ruleId"`
	Fits   bool                  `json:"fits"`
	Why    string                `json:"why,omitempty" doc:"It is not for the event."`
	Does   *domain.TriggerAction `json:"does,omitempty" doc:"What it would do."`
}
