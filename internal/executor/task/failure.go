package task

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Error codes of results and reports that only the executor creates.
const (
	CodeExecutor        = "EXECUTOR_ERROR"         // the hub did not provide what the prompt needs, or the parameters are wrong
	CodeNoKey           = "NO_API_KEY"             // a key that the agent needs is not available
	CodeNotFound        = "AGENT_NOT_FOUND"        // the agent's program does not exist
	CodeSandbox         = "SANDBOX_FAILED"         // the agent cannot be confined as its session requires
	CodeStart           = "AGENT_START_FAILED"     // the agent's program exists but could not be started
	CodeTimeout         = "AGENT_TIMEOUT"          // the agent does not answer
	CodeExited          = "AGENT_EXITED"           // the agent exited during the turn
	CodeAgent           = "AGENT_ERROR"            // the agent answered with an error
	CodeContextOverflow = "AGENT_CONTEXT_OVERFLOW" // the prompt does not fit into the model's context
	CodeAuthRequired    = "AGENT_AUTH_REQUIRED"    // the user has to log in
	CodeSetting         = "SETTING_REFUSED"        // the agent does not have or did not accept the mode, model or option
	CodeUnasked         = "RULES_NOT_ASKED"        // report_error: the agent may act without asking in its current mode
	CodeIgnored         = "SETTING_IGNORED"        // report_error: the agent has no such setting
	CodeMCPServer       = "MCP_SERVER_FAILED"      // report_error: an MCP server will not be available
	CodeContent         = "CONTENT_REFUSED"        // the agent does not accept such content in prompts
	CodePermission      = "PERMISSION_FAILED"      // the hub could not be asked for permission
	CodeOutput          = "OUTPUT_MISSING"         // the hub did not accept the agent's output
	CodeLineTooLong     = "AGENT_LINE_TOO_LONG"    // report_error: a line was dropped
	CodeGarbage         = "AGENT_GARBAGE"          // report_error: lines that are not protocol messages
)

// A Failure is why a task failed: a code, and a message for the user.
type Failure struct {
	Code, Message string
	SignIn        []domain.AuthMethod // of [CodeAuthRequired]: the ways that the agent offers
}

// StartFailure explains why an agent's program could not be started.
func StartFailure(l *catalog.AgentLaunch, cwd string, err error) *Failure {
	agent, program := l.Name, l.Command[0]
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist) && isDir(cwd):
		todo := cmp.Or(l.Install, "install it (`duet-rpc agents` says how), or correct the agent's command in the configuration")
		return &Failure{Code: CodeNotFound, Message: fmt.Sprintf("%s: the program %q was not found: %s", agent, program, todo)}
	case !isDir(cwd):
		return &Failure{Code: CodeStart, Message: fmt.Sprintf("%s: the working directory %s does not exist", agent, cwd)}
	}
	return &Failure{Code: CodeStart, Message: fmt.Sprintf("%s: the program %q could not be started: %v", agent, program, err)}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return path == "" || err == nil && info.IsDir()
}
