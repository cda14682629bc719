// Package transcript reads a conversation from the hub, and writes it down: for people
// at a terminal, as Markdown, and as JSON for other tools (docs/export.md).
package transcript

import (
	"context"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// A Conversation is what was said and done up to a session, and which files the
// session changed.
type Conversation struct {
	Session wire.Session
	Entries []wire.Entry
	Files   []File
	Diff    string // of all files

	session json.RawMessage // these as they came
	files   []json.RawMessage
}

// A File is one that the session changed.
type File struct {
	Path   string `json:"file_path"`
	Diff   string `json:"diff"`
	Binary bool   `json:"binary"`
}

// Read reads a conversation whole, by any id of its session.
func Read(ctx context.Context, c *client.Client, id string) (Conversation, error) {
	var r Conversation
	s, raw, err := wire.Call[struct{ Session json.RawMessage }](ctx, c, "getSessionState", map[string]string{"session_id": id})
	if err != nil {
		return r, err
	}
	r.session = s.Session
	var state struct{ Session wire.Session }
	if err := json.Unmarshal(raw, &state); err != nil {
		return r, err
	}
	r.Session = state.Session
	err = wire.Conversation(ctx, c, r.Session.ID, func(e wire.Entry) error {
		r.Entries = append(r.Entries, e)
		return nil
	})
	if err != nil {
		return r, err
	}
	return r, r.readFiles(ctx, c)
}

func (r *Conversation) readFiles(ctx context.Context, c *client.Client) error {
	changed, _, err := wire.Call[struct {
		Snapshots []json.RawMessage `json:"snapshots"`
		Diff      string            `json:"diff"`
	}](ctx, c, "getSessionSnapshots", map[string]string{"session_id": r.Session.ID})
	if err != nil {
		return err
	}
	r.files, r.Diff = changed.Snapshots, changed.Diff
	r.Files, err = decoded[File](r.files)
	return err
}

func decoded[T any](list []json.RawMessage) ([]T, error) {
	out := make([]T, len(list))
	for i, raw := range list {
		if err := json.Unmarshal(raw, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ReadDiff is what a session has changed, as one unified diff.
func ReadDiff(ctx context.Context, c *client.Client, id string) (string, error) {
	var r Conversation
	r.Session.ID = id
	err := r.readFiles(ctx, c)
	return r.Diff, err
}

// JSON is the conversation for other tools, as docs/export.md describes it.
func (r Conversation) JSON() ([]byte, error) {
	files := r.files
	if files == nil {
		files = []json.RawMessage{}
	}
	events := make([]json.RawMessage, len(r.Entries))
	for i, e := range r.Entries {
		events[i] = e.Raw
	}
	return json.MarshalIndent(struct {
		Format  string            `json:"format"`
		Version int               `json:"version"`
		Session json.RawMessage   `json:"session"`
		Events  []json.RawMessage `json:"events"`
		Files   []json.RawMessage `json:"files"`
		Diff    string            `json:"diff"`
	}{"duet-conversation", 1, r.session, events, files, r.Diff}, "", "  ")
}
