package hubwire

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/client"
)

// A Session is one prompt and what an agent made of it.
type Session struct {
	ID           string   `json:"id"`
	ThreadID     string   `json:"thread_id"`
	State        string   `json:"state"`
	Agent        string   `json:"agent"`
	Title        string   `json:"title"`
	Summary      string   `json:"summary"`
	WorkingDir   string   `json:"working_dir"`
	LastActivity string   `json:"last_activity_at"`
	Mode         string   `json:"permission_mode"`
	AgentMode    string   `json:"agent_mode"`
	Model        string   `json:"model"`
	Directories  []string `json:"additional_directories"`

	RequestedMode    string            `json:"requested_mode"`
	RequestedModel   string            `json:"requested_model"`
	RequestedOptions map[string]string `json:"requested_options"`

	Modes []Choice     `json:"modes"`
	Told  AgentSession `json:"agent_session"`

	StopReason   string  `json:"stop_reason"`
	Error        string  `json:"error"`
	ErrorCode    string  `json:"error_code"`
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	CacheRead    int64   `json:"cache_read_input_tokens"`
	CacheWrite   int64   `json:"cache_creation_input_tokens"`
	TotalTokens  int64   `json:"total_tokens"`
	ContextUsed  int64   `json:"effective_context_tokens"`
	ContextSize  int64   `json:"context_limit"`
	CostUSD      float64 `json:"cost_usd"`

	AuthMethods []AuthMethod `json:"auth_methods"`
}

// An AuthMethod is a way to sign in to an agent.
type AuthMethod struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Type        string `json:"type"`
}

// An AgentSession is what an agent tells of its session.
type AgentSession struct {
	Mode     *Selection `json:"mode"`
	Model    *Selection `json:"model"`
	Options  []Option   `json:"options"`
	Commands []Command  `json:"commands"`
	Info     *struct {
		Title string `json:"title"`
	} `json:"info"`
}

// A Selection is one of the choices that there are.
type Selection struct {
	Current   string   `json:"current"`
	Available []Choice `json:"available"`
}

// A Choice is something that an agent can be set to.
type Choice struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// An Option is a setting of an agent's own.
type Option struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Category    string   `json:"category"`
	Type        string   `json:"type"`
	Current     string   `json:"current"`
	Values      []Choice `json:"values"`
}

// A Command is a slash command, without the slash.
type Command struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	InputHint   string `json:"input_hint"`
}

// An Agent is one that is configured or known.
type Agent struct {
	Name      string `json:"name"`
	Title     string `json:"title"`
	Default   bool   `json:"default"`
	Available bool   `json:"available"`
}

// Described is what is known of an agent before it is started.
type Described struct {
	Agent string       `json:"agent"`
	Modes []Choice     `json:"modes"`
	Told  AgentSession `json:"agent_session"`
}

// Started is what the hub answers to whoever asked for a session.
type Started struct {
	SessionID string `json:"session_id"`
	ThreadID  string `json:"thread_id"`
	Agent     string `json:"agent"`
}

// An Entry is something that was said or done, as getConversation tells it.
type Entry struct {
	SessionID   string          `json:"session_id"`
	EventType   string          `json:"event_type"`
	CreatedAt   string          `json:"created_at"`
	Role        string          `json:"role"`
	Content     string          `json:"content"`
	ToolID      string          `json:"tool_id"`
	ToolName    string          `json:"tool_name"`
	ToolInput   string          `json:"tool_input_json"`
	ParentTool  string          `json:"parent_tool_use_id"`
	ResultFor   string          `json:"tool_result_for_id"`
	Result      string          `json:"tool_result_content"`
	IsCompleted bool            `json:"is_completed"`
	Seq         int64           `json:"seq"`
	Key         string          `json:"key"`
	Title       string          `json:"title"`
	ToolKind    string          `json:"tool_kind"`
	Status      string          `json:"status"`
	Refusal     string          `json:"refusal"`
	Data        json.RawMessage `json:"data"`
}

// Call calls a method of the hub.
func Call[R any](ctx context.Context, c *client.Client, method string, params any, opts ...client.CallOption) (result R, err error) {
	err = c.Call(ctx, method, params, &result, opts...)
	return result, err
}

// State is a session, by any of its ids.
func State(ctx context.Context, c *client.Client, id string) (Session, error) {
	r, err := Call[struct{ Session Session }](ctx, c, "getSessionState", map[string]string{"session_id": id})
	return r.Session, err
}

// LastSeq is the number of the last event in the log.
func LastSeq(ctx context.Context, c *client.Client) (int64, error) {
	r, err := Call[struct {
		Subsystems struct {
			Store struct {
				LastSeq int64 `json:"last_seq"`
			}
		}
	}](ctx, c, "daemon.status", nil)
	return r.Subsystems.Store.LastSeq, err
}

// entriesAtOnce is how many entries of a conversation are asked for at once.
const entriesAtOnce = 200

// Conversation calls each with what was said and done in the conversation of a
// session, from its beginning.
func Conversation(ctx context.Context, c *client.Client, session string, each func(Entry) error) error {
	for offset := 0; ; {
		page, err := Call[struct {
			Events []Entry
			Next   *int `json:"next_offset"`
		}](ctx, c, "getConversation", map[string]any{"session_id": session, "offset": offset, "limit": entriesAtOnce})
		if err != nil {
			return err
		}
		for _, entry := range page.Events {
			if err := each(entry); err != nil {
				return err
			}
		}
		if page.Next == nil {
			return nil
		}
		offset = *page.Next
	}
}

// attachmentPart is how much of an attachment is asked for at once, in bytes.
const attachmentPart = 1 << 20

// AttachmentBytes are those of an attachment.
func AttachmentBytes(ctx context.Context, c *client.Client, id string) ([]byte, error) {
	var all []byte
	for offset := int64(0); ; {
		part, err := Call[struct {
			Data []byte
			Next *int64 `json:"next_offset"`
		}](ctx, c, "getAttachment", map[string]any{"id": id, "offset": offset, "limit": attachmentPart})
		if err != nil {
			return nil, err
		}
		all = append(all, part.Data...)
		if part.Next == nil {
			return all, nil
		}
		offset = *part.Next
	}
}

// Called is what people know a session by: its title, or what was asked for.
func (s Session) Called() string { return cmp.Or(s.Title, s.Summary) }
