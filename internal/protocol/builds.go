package protocol

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

type RunBuildParams struct {
	Name    string `json:"name,omitempty" doc:"A name from build.list. Default: the first one."`
	Backend bool   `json:"backend,omitempty" doc:"Without a name: the first of [[builds]] with backend = true, or a build found in a project that also has a package.json or tsconfig.json."`
}

// A BuildTarget is a build of the project.
type BuildTarget struct {
	Name      string   `json:"name"`
	Command   []string `json:"command" doc:"The program and its arguments."`
	Directory string   `json:"directory,omitempty" doc:"Working directory, relative to the project's. Default: the project's."`
	Backend   bool     `json:"backend" doc:"build.run with backend runs this build."`
	Detected  bool     `json:"detected" doc:"The build comes from the project's files, not from the configuration."`
}

type BuildList struct {
	Builds []BuildTarget `json:"builds"`
}

// A BuildResult is the result of a successful build.
type BuildResult struct {
	Success    bool                `json:"success"`
	BuildID    string              `json:"build_id"`
	Name       string              `json:"name"`
	Command    []string            `json:"command"`
	DurationMS int64               `json:"duration_ms"`
	Warnings   []domain.Diagnostic `json:"warnings" doc:"Diagnostics of the build, at most 1,000."`
}

// A BuildFailure is the error data of a failed build.
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
	Directory string   `json:"directory,omitempty" doc:"Working directory, relative to the agent's. Default: the agent's."`
}

type GateList struct {
	Gates   []GateDefinition `json:"gates"`
	Waiting []string         `json:"waiting" doc:"Gates of a project's file that the user does not trust yet (duet-rpc trust)."`
}

type CheckGateParams struct {
	Gate string `json:"gate" doc:"The name of a configured gate, or a shell command line."`
}

// GateProgress is the notification gateProgress.
type GateProgress struct {
	Gate   string `json:"gate"`
	Output string `json:"output"`
}

// Gated has the parameters of requests that set gates.
type Gated struct {
	Gates         []string `json:"gates,omitempty" doc:"Commands that must succeed (\"Gates\"): names of [[gates]], or shell command lines. They run in the agent's directory after each completed turn. The failures are the session's next prompt."`
	MaxIterations int      `json:"max_iterations,omitempty" doc:"With gates: the maximum number of turns. Default 5, at most 100."`
}

// Gates is the state of work that has gates.
type Gates struct {
	State         string       `json:"state" doc:"working, checking (the gates run), passed, failed, or stopped (a turn failed, or a client ended it)."`
	Reason        string       `json:"reason,omitempty" doc:"Why the work failed or stopped."`
	Iteration     int          `json:"iteration" doc:"The current or last turn, from 1."`
	MaxIterations int          `json:"max_iterations"`
	Gates         []string     `json:"gates"`
	Failing       []string     `json:"failing" doc:"Gates that did not pass in the last check."`
	Results       []GateResult `json:"results,omitempty" doc:"The results of the last check. Not in lists."`
	Turn          string       `json:"turn" doc:"The current or last turn, such as 12.3."`
	TurnUUID      string       `json:"turn_uuid"`
}

type PreviewParams struct {
	URL    string `json:"url" doc:"A path, with an optional query."`
	Origin string `json:"origin,omitempty" doc:"The client's address of the preview, such as http://127.0.0.1:8080. URLs that begin with it count as paths."`
}

type PreviewFile struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body" doc:"Base64. A file that does not fit into a message is the error preview_load_failed: the limit is 6 MiB with frames, 700 KiB with lines."`
}

type PreviewShown struct {
	URL   string `json:"url,omitempty" doc:"The address that the clients got."`
	Shown int    `json:"shown" doc:"Number of clients that were notified."`
}

// PreviewSession is the session of a page's message.
type PreviewSession struct {
	Session Ref `json:"session,omitempty" doc:"The session to store the message with. Default: the one that started last."`
}

type ConsoleParams struct {
	Level   string            `json:"level,omitempty" doc:"log, debug, info, warn or error. Default: log."`
	Message string            `json:"message,omitempty" doc:"The text."`
	Args    []json.RawMessage `json:"args,omitempty" doc:"The values written, if there is no message: strings unchanged, other values as JSON."`
	URL     string            `json:"url,omitempty" doc:"The page's address."`
	Line    int               `json:"line,omitempty" doc:"Line of the script, from 1."`
	Column  int               `json:"column,omitempty" doc:"Column in the line, from 1."`
	PreviewSession
}

type PageErrorParams struct {
	Message string `json:"message" doc:"The error message."`
	Stack   string `json:"stack,omitempty" doc:"The stack trace, line by line."`
	URL     string `json:"url,omitempty" doc:"The address of the script or the page."`
	Source  string `json:"source,omitempty" doc:"Alias of url."`
	Line    int    `json:"line,omitempty" doc:"From 1."`
	Column  int    `json:"column,omitempty" doc:"Column in the line, from 1."`
	PreviewSession
}

type NavigationParams struct {
	URL   string `json:"url" doc:"The page's current address."`
	Title string `json:"title,omitempty" doc:"The page's title."`
	PreviewSession
}

type PreviewKept struct {
	Kept bool `json:"kept" doc:"false if the pages send too many messages."`
}

type PageMessagesParams struct {
	Session  Ref   `json:"session,omitempty" doc:"Only messages stored with this session, or with this turn."`
	Problems bool  `json:"problems,omitempty" doc:"Only errors, and console messages of the levels warn and error."`
	AfterID  int64 `json:"after_id,omitempty" doc:"Only messages with a higher id."`
	Limit    uint  `json:"limit,omitempty" doc:"Number of messages, the last ones. Default 100, at most 1000."`
	Follow   *bool `json:"follow,omitempty" doc:"true: the connection gets further messages as notifications pageMessage, which look like the messages here. false ends this. Absent: no change. A message that repeats is sent again."`
}

// A PageMessage is a message of a preview's page.
type PageMessage struct {
	ID       int64  `json:"id"`
	Kind     string `json:"kind" doc:"console, error or navigation."`
	Level    string `json:"level,omitempty" doc:"For console: log, debug, info, warn or error."`
	Message  string `json:"message" doc:"For navigation: the title of the page."`
	URL      string `json:"url,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Stack    string `json:"stack,omitempty"`
	TurnUUID string `json:"turn_uuid,omitempty" doc:"The turn at the time."`
	Count    int    `json:"count" doc:"How often the message came in a row."`
	Time     string `json:"time" doc:"When it came last."`
}

type PageMessages struct {
	Messages []PageMessage `json:"messages"`
}
