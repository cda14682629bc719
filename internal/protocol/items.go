package protocol

import (
	"cmp"
	"strconv"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/server"
)

type ItemsParams struct {
	Session Ref    `json:"session,omitempty" doc:"The session, with the turns of others that it was forked from. A turn, such as 12.3, means the items up to and including it. This or turn is required."`
	Turn    Ref    `json:"turn,omitempty" doc:"In place of session: only items of this turn."`
	Key     string `json:"key,omitempty" doc:"With turn: only items with this key."`

	AgentSessionID string `json:"agent_session_id,omitempty" doc:"In place of session: the agent's own id of its session, as in turn.get."`

	Before *int64 `json:"before,omitempty" doc:"Only items before the one with this id, for paging."`
	After  *int64 `json:"after,omitempty" doc:"Only items after the one with this id, the first ones; 0: from the first item on. Without it the result has the last ones."`
	Limit  *uint  `json:"limit,omitempty" doc:"Default 100, at most 1000. 1 brings two if one of them is a message in progress."`

	Uncut *UncutItems `json:"-"` // of a dialect; in place of Before, After and Limit
}

// UncutItems selects items for a dialect, which cuts them in its own form. It counts an item as one event,
// and a tool call with a result as two.
type UncutItems struct {
	Offset int  // events to skip
	Limit  int  // number of events, or one more; 0: all
	Spoken bool // without plans, changed files and answers
}

func (p ItemsParams) Check() error {
	if p.AgentSessionID != "" && p.Session != "" {
		return server.InvalidParam(server.ParamError{
			Param: "agent_session_id", Expected: "to be left out beside session", Received: p.AgentSessionID,
		})
	}
	if err := sessionOrTurn(cmp.Or(p.Session, Ref(p.AgentSessionID)), p.Turn); err != nil {
		return err
	}
	switch {
	case p.Key != "" && p.Turn == "":
		return NotEmpty("turn", "")
	case p.Before != nil && p.After != nil:
		return server.InvalidParam(server.ParamError{
			Param: "after", Expected: "to be left out beside before", Received: strconv.FormatInt(*p.After, 10),
		})
	}
	return nil
}

// sessionOrTurn requires one of two parameters.
func sessionOrTurn(session, turn Ref) error {
	switch {
	case session == "" && turn == "":
		return NotEmpty("session", "")
	case session != "" && turn != "":
		return server.InvalidParam(server.ParamError{Param: "turn", Expected: "to be left out beside session", Received: string(turn)})
	}
	return nil
}

// ItemList is a page of items, in order.
type ItemList struct {
	Items      []*SessionItem `json:"items" doc:"In order. They are whole; only one that is too long for a message is cut, and says so."`
	NextBefore int64          `json:"next_before,omitempty" doc:"Present if there are earlier ones: pass it as before."`
	NextAfter  int64          `json:"next_after,omitempty" doc:"With after, present if there are later ones: pass it as after."`

	// With Uncut.
	Of      domain.TurnInSession `json:"-"` // the turn that the parameters name
	Skipped int                  `json:"-"` // events of the first item that precede the page
	Total   int                  `json:"-"` // events of all pages
}

// A SessionItem is an item with its place in a session.
type SessionItem struct {
	ID        int64        `json:"id,omitempty" doc:"The item's id, for before and after. Absent while its text is being written."`
	Turn      string       `json:"turn" doc:"The turn's number, such as 12.3."`
	TurnUUID  string       `json:"turn_uuid"`
	TurnState domain.State `json:"turn_state"`
	Seq       int64        `json:"seq,omitempty" doc:"Number of the event that changed it last."`
	CreatedAt time.Time    `json:"created_at"`
	UpdatedAt time.Time    `json:"updated_at"`
	Item
	Approval       string         `json:"approval,omitempty" doc:"Of a tool call: its approval, for approval.get."`
	ApprovalStatus ApprovalStatus `json:"approval_status,omitempty"`
	Open           bool           `json:"open,omitempty" doc:"Its text is being written, or the tool call has not ended."`
	Withdrawn      bool           `json:"withdrawn,omitempty" doc:"A prompt that was cancelled while it was queued: the agent never gets it."`

	Entries []domain.PlanEntry `json:"entries,omitempty" doc:"Of a plan."`
	Change  *domain.FileNote   `json:"change,omitempty" doc:"Of a change: a file that the turn has changed."`
	Answer  *AnswerNote        `json:"answer,omitempty" doc:"Of an answer."`

	Of domain.Item `json:"-"` // for dialects
}

// An AnswerNote is what was decided about a question, with the names of an [Approval].
type AnswerNote struct {
	Approval    string         `json:"approval"`
	Type        ApprovalType   `json:"type"`
	Status      ApprovalStatus `json:"status" doc:"Not pending."`
	Title       string         `json:"title"`
	Response    string         `json:"response,omitempty"`
	DecidedBy   string         `json:"decided_by" doc:"As in approval.get."`
	DecidedIn   string         `json:"decided_in,omitempty" doc:"The client in which the user decided."`
	Edited      bool           `json:"input_was_edited,omitempty"`
	Explanation string         `json:"explanation,omitempty" doc:"Describes the rule or mode that decided."`
	Delivery    string         `json:"delivery,omitempty" doc:"How the answer reached the agent, if the agent was not seen to act on it."`
}

// ItemOf returns the item of a session for clients.
func ItemOf(i domain.Item) Item {
	item := Item{
		Type: itemTypes[i.Kind], Key: i.Key, Role: i.Role, Text: i.Content, Title: i.Title, ToolName: i.Tool, ToolKind: i.ToolKind,
		ToolInput: i.Input, Result: i.Result, ParentID: i.ParentID,
	}
	if i.Kind == domain.ItemTool {
		item.Role, item.Status = "", ToolStatus(i.Status)
	}
	switch d := i.Data.(type) {
	case domain.ToolDetails:
		item.Details, item.RefusedBy, item.Refusal = ToolDetailsOf(d), d.RefusedBy, d.Refusal
	case domain.MessageContent:
		item.Attachments, item.Meta = AttachmentsOf(d.Blocks), d.Meta
	}
	return item
}

type SearchParams struct {
	Query  string `json:"query" doc:"Words to find: at most 64, and duplicates count once."`
	Limit  *uint  `json:"limit,omitempty" doc:"Default 20, at most 200."`
	Offset uint   `json:"offset,omitempty" doc:"Number of hits to skip."`
}

func (p SearchParams) Check() error { return NotEmpty("query", p.Query) }

type SearchResult struct {
	Hits       []*SearchHit `json:"hits"`
	NextOffset *int         `json:"next_offset,omitempty" doc:"Present if there may be more: pass it as offset."`
}

type SearchHit struct {
	Turn        string    `json:"turn" doc:"Such as 12.3."`
	Session     int64     `json:"session" doc:"The session's number in the project."`
	TurnUUID    string    `json:"turn_uuid"`
	SessionUUID string    `json:"session_uuid"`
	Title       string    `json:"title" doc:"The session's title, or the first 80 characters of its first prompt."`
	Agent       string    `json:"agent"`
	Item        int64     `json:"item" doc:"The item's id in session.items."`
	Key         string    `json:"key" doc:"Its key."`
	Type        ItemType  `json:"type"`
	Role        string    `json:"role,omitempty"`
	ToolName    string    `json:"tool_name,omitempty"`
	Snippet     string    `json:"snippet" doc:"At most 400 characters of the text around the match, which is marked by « and »; … is text left out."`
	Rank        float64   `json:"rank" doc:"Lower is better."`
	CreatedAt   time.Time `json:"created_at"`
}

func (s *SearchHit) Texts() []*string { return []*string{&s.Snippet, &s.Title} }

type AttachmentParams struct {
	ID     string `json:"id" doc:"The attachment_id."`
	Offset uint   `json:"offset,omitempty" doc:"Number of bytes to skip."`
	Limit  *uint  `json:"limit,omitempty" doc:"Maximum number of bytes. Absent or 0: as many as fit."`
}

func (p AttachmentParams) Check() error { return NotEmpty("id", p.ID) }

type AttachmentResult struct {
	ID         string `json:"id"`
	MIMEType   string `json:"mime_type,omitempty" doc:"As first reported. Absent: unknown."`
	Size       int64  `json:"size" doc:"Total size in bytes."`
	Data       string `json:"data" doc:"Base64."`
	NextOffset *int64 `json:"next_offset,omitempty" doc:"Present if there is more: pass it as offset."`
}

// PromptContent is the content of a prompt in addition to its text.
type PromptContent struct {
	Content []catalog.ContentBlock `json:"content,omitempty" doc:"Content blocks of the Agent Client Protocol: images, audio, resources and resource links. Text blocks are appended to the prompt. Limits: 10 MiB for each image, audio or resource, 20 MiB in total. If the agent does not accept images or audio, the session fails and lists what it accepts; a resource becomes a link."`
}
