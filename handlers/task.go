package handlers

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A task is a run as AIWG shows it, and our names for it.
type task struct {
	ID          string          `json:"id"`
	Prompt      string          `json:"prompt"`
	Agent       *string         `json:"agent"`
	Priority    int             `json:"priority"`
	State       string          `json:"state" doc:"queued, running, completed, failed or cancelled."`
	CreatedAt   string          `json:"createdAt"`
	StartedAt   *string         `json:"startedAt"`
	CompletedAt *string         `json:"completedAt" doc:"When it ended, however it ended."`
	PID         *int            `json:"pid" doc:"Always null: agents are none of the caller's processes."`
	Result      *string         `json:"result" doc:"The agent's last message, once the task is completed."`
	Error       *string         `json:"error"`
	Output      string          `json:"output" doc:"What the agent said so far. In task.list: its last message."`
	Metadata    json.RawMessage `json:"metadata"`

	SessionID string `json:"session_id"`
	RunID     string `json:"run_id"`
	ThreadID  string `json:"thread_id"`
	CWD       string `json:"cwd"`
	Title     string `json:"title"`
	Summary   string `json:"summary" doc:"The beginning of what a human asked for, or why the agent went on by itself."`
	ErrorCode string `json:"error_code,omitempty" doc:"In capitals: TIMEOUT, ORPHANED, ..."`
	Status    string `json:"status" doc:"The state as sessions have it."`

	AuthMethods []dialect.AuthMethod `json:"auth_methods,omitempty" doc:"It failed because somebody has to sign in, or to give the agent its key: the ways that the agent offers."`
	Gates       *gates               `json:"gates,omitempty" doc:"Of work that has gates (\"Gates\"): where it stands."`
}

func (t *task) texts() []*string {
	list := []*string{&t.Prompt, &t.Output}
	for _, s := range []*string{t.Result, t.Error} {
		if s != nil {
			list = append(list, s)
		}
	}
	return list
}

func (t *task) atMost() int {
	return 4096 + textAtMost(t.texts()...) + textAtMost(&t.CWD, &t.Title) + len(t.Metadata) + authMethodsAtMost(t.AuthMethods) + gatesAtMost(t.Gates)
}

// authMethodsAtMost is how long ways to sign in can be as JSON.
func authMethodsAtMost(methods []dialect.AuthMethod) (total int) {
	for _, m := range methods {
		total += 100 + textAtMost(&m.ID, &m.Name, &m.Description, &m.Type)
	}
	return total
}

func taskOf(s domain.Session, output string) *task {
	t := &task{
		ID: domain.TaskName(s.Task), Prompt: s.Prompt, Agent: orNil(s.Agent), Priority: s.Priority, State: dialect.TaskStateOf(s.State),
		CreatedAt: dialect.Timestamp(s.Created), StartedAt: dialect.TimestampOrNull(s.Started), CompletedAt: dialect.TimestampOrNull(s.Ended),
		Error: orNil(dialect.ErrorText(s.Run)), Output: output, Metadata: metadataOf(s.Run),
		SessionID: s.SessionID, RunID: s.RunID, ThreadID: s.Thread.UUID, CWD: s.Thread.CWD, Title: titleOf(s), Summary: headline(summaryOf(s.Run), summaryShown),
		ErrorCode: s.ErrorCode, Status: dialect.StatusOf(s.State), AuthMethods: dialect.AuthMethods(s.SignIn),
	}
	if s.State == domain.Completed {
		t.Result = &s.Result
	}
	return t
}

// titleOf is the run's title, else its thread's.
func titleOf(s domain.Session) string {
	if s.Title != "" {
		return s.Title
	}
	return s.Thread.Title
}

// metadataOf is an object, with the source that AIWG gives to
// chat messages.
func metadataOf(r domain.Run) json.RawMessage {
	members := map[string]json.RawMessage{}
	if len(r.Metadata) > 0 && json.Unmarshal(r.Metadata, &members) != nil || members == nil {
		members = map[string]json.RawMessage{}
	}
	if _, has := members["source"]; !has && r.Source == domain.SourceChat {
		members["source"] = json.RawMessage(`"ipc-chat"`)
	}
	b, err := json.Marshal(members)
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}
