package acp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
)

// maxTitle bounds what a denial says of a command, in bytes.
const maxTitle = 200

// allowed asks the hub whether the policy denies what the agent has us do: it
// may not have asked for permission. An error is for the agent.
func (a *agent) allowed(ctx context.Context, q catalog.RequestPermissionParams) error {
	t := a.current.Load()
	if t == nil {
		return fmt.Errorf("%s: not between prompts", q.Title)
	}
	q.SessionToken, q.TaskID = t.Params.SessionToken, t.ID
	q.Unasked = t.tools.names(q)
	answer, err := a.driver.hub.RequestPermission(ctx, q)
	switch {
	case err != nil:
		err = fmt.Errorf("%s: the hub could not be asked whether it is allowed: %w", q.Title, err)
		if ctx.Err() == nil && !t.Stopped() {
			t.Problem(task.CodePermission, err.Error())
			t.Fail(task.CodePermission, err.Error())
		}
		return err
	case answer.Cancelled:
		return errors.New("the turn is being ended")
	case !answer.Approved:
		return fmt.Errorf("%s: denied by %s", q.Title, answer.Reason)
	}
	return nil
}

// writing is the question whether path may be written. What changes a file may
// be an edit of it; what makes one is not.
func (a *agent) writing(path string) catalog.RequestPermissionParams {
	path = a.workspace.Absolute(path)
	input, _ := task.JSON(map[string]string{"file_path": path})
	q := catalog.RequestPermissionParams{ToolName: "Write", ToolKind: "edit", Title: "Write " + path, ToolInput: input, Paths: []string{path}}
	if a.workspace.Has(path) {
		q.Unasked = []string{"Edit"}
	}
	return q
}

// running is the question whether a program may be run.
func running(argv []string) catalog.RequestPermissionParams {
	line := shellcommand.Line(argv)
	input, _ := task.JSON(map[string]string{"command": line})
	title := line
	if len(title) > maxTitle {
		title = strings.ToValidUTF8(title[:maxTitle], "") + "…"
	}
	return catalog.RequestPermissionParams{ToolName: "Bash", ToolKind: "execute", Title: "Run " + title, ToolInput: input}
}
