package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerEditor registers the methods by which agents use the tools of an editor: diagnostics,
// definitions, the selection and others.
func registerEditor(reg *server.Registry, d Domain) *editors {
	e := new(editors)
	handle(reg, d, nativeFamily, "editor.offer", e.offer,
		server.Doc("Offers tools of the editor to agents. The daemon then sends requests editor.TOOL on this connection, for sessions in which "+
			"it sent the last prompt."))
	handle(reg, d, nativeFamily, "editor.saved", saved,
		server.Doc("Notes that the user has saved files in an editor. While an agent's command runs, these files are then no changes of the "+
			"command, unless they change again."))
	handle(reg, d, nativeFamily, "editor.call", e.call, server.LongRunning(),
		server.Doc("Calls a tool of a session's editor and returns its result. The duet-rpc mcp --session of an agent calls it. If no editor "+
			"offers the tool, the error is not_offered, at once."))
	return e
}

const (
	editorPatience   = 10 * time.Second // a language server may still be reading the project
	editorAtMost     = 256 << 10        // of a result, in bytes: agents pay for each
	promptedSessions = 1000             // sessions whose editor is remembered
)

// editors stores the connections that offer the tools of their editor.
type editors struct {
	mu      sync.Mutex // guards the fields below
	offers  []*editorOffer
	prompts map[string]*editorOffer // by a session's UUID: the one that sent its last prompt
}

// editorOffer is the offer of a connection. The one that was used last is last in editors.offers.
type editorOffer struct {
	conn  *server.Conn
	name  string
	tools []string
}

func (e *editors) offer(ctx context.Context, _ *hub.Hub, p protocol.EditorOfferParams) (protocol.Success, error) {
	conn := server.ConnFrom(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	at := e.index(conn)
	switch {
	case at < 0 && !conn.Go(func(connected context.Context) { <-connected.Done(); e.withdraw(conn) }):
		return protocol.Success{}, domain.ErrEnding
	case at < 0:
		at = len(e.offers)
		e.offers = append(e.offers, &editorOffer{conn: conn})
	}
	e.offers[at].name, e.offers[at].tools = cmp.Or(p.Client, "the editor"), p.Tools
	return protocol.Success{Success: true}, nil
}

func saved(_ context.Context, h *hub.Hub, p protocol.EditorSavedParams) (protocol.Success, error) {
	h.Saved(p.Paths)
	return protocol.Success{Success: true}, nil
}

func (e *editors) index(conn *server.Conn) int {
	return slices.IndexFunc(e.offers, func(o *editorOffer) bool { return o.conn == conn })
}

func (e *editors) withdraw(conn *server.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.offers = slices.DeleteFunc(e.offers, func(o *editorOffer) bool { return o.conn == conn })
	for session, o := range e.prompts {
		if o.conn == conn {
			delete(e.prompts, session)
		}
	}
}

// prompted notes that the connection of ctx has sent a prompt, if it is an editor's.
func (e *editors) prompted(ctx context.Context, session string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := e.index(server.ConnFrom(ctx))
	if at < 0 || session == "" {
		return
	}
	o := e.offers[at]
	e.offers = append(slices.Delete(e.offers, at, at+1), o)
	if e.prompts == nil || len(e.prompts) >= promptedSessions {
		e.prompts = make(map[string]*editorOffer) // forgotten sessions use the editor that was used last
	}
	e.prompts[session] = o
}

// of returns an editor that has a tool: the one that sent the session's last prompt, else the one
// that was used last.
func (e *editors) of(session, tool string) (editorOffer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if o := e.prompts[session]; o != nil && slices.Contains(o.tools, tool) {
		return *o, nil
	}
	for _, o := range slices.Backward(e.offers) {
		if slices.Contains(o.tools, tool) {
			return *o, nil
		}
	}
	if len(e.offers) > 0 {
		return editorOffer{}, domain.Errorf(domain.KindNotOffered, "the user's editor does not offer %s", tool)
	}
	return editorOffer{}, domain.Errorf(domain.KindNotOffered, "no editor is connected")
}

func (e *editors) call(ctx context.Context, h *hub.Hub, p protocol.EditorCallParams) (protocol.EditorCallResult, error) {
	var r protocol.EditorCallResult
	s, err := h.Query().Turn(ctx, string(p.Session))
	if err != nil {
		return r, err
	}
	editor, err := e.of(s.Session.UUID, p.Tool)
	if err != nil {
		return r, err
	}
	denied, err := h.Approvals().DeniesReading(ctx, s.Turn)
	if err != nil {
		return r, err
	}
	params, err := editorArguments(h, s, p.Arguments, denied)
	if err != nil {
		return r, err
	}
	asking, cancel := context.WithTimeout(ctx, editorPatience)
	defer cancel()
	err = editor.conn.Call(asking, protocol.EditorMethod+p.Tool, params, &r.Result)
	var refused *jsonrpc2.Error
	switch {
	case ctx.Err() != nil:
		return r, ctx.Err()
	case errors.As(err, &refused):
		return r, domain.Errorf(domain.KindEditor, "%s", refused.Message)
	case asking.Err() != nil:
		return r, domain.Errorf(domain.KindEditor, "%s did not answer within %v", editor.name, editorPatience)
	case err != nil:
		return r, domain.Errorf(domain.KindNotOffered, "%s has closed its connection", editor.name)
	case len(r.Result) > editorAtMost:
		return protocol.EditorCallResult{}, domain.Errorf(
			domain.KindEditor, "the result of %s is longer than %d KiB; ask for less, such as one file", p.Tool, editorAtMost>>10,
		)
	}
	r.Result, err = readable(r.Result, denied, h.SessionDirectories(s).Covers)
	return r, err
}

// readable returns a result without the contents of files that the agent may not read, and of files
// outside of the session's directories. A note tells the agent how many of those there are.
func readable(result json.RawMessage, denied, has func(path string) bool) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(result, &members) != nil {
		return result, nil // not an object
	}
	pathOf := func(raw json.RawMessage) string {
		var one struct{ Path string }
		_ = json.Unmarshal(raw, &one) // another value has none
		return one.Path
	}
	outside, known := 0, make(map[string]bool) // whether a path is in the directories
	isDenied := func(raw json.RawMessage) bool {
		path := pathOf(raw)
		if path == "" {
			return false
		}
		inside, seen := known[path]
		if !seen {
			inside = has(path)
			known[path] = inside
		}
		if !inside {
			outside++
			return true
		}
		return denied(path)
	}
	if isDenied(result) {
		if outside > 0 {
			return nil, errOutside
		}
		return nil, errDeniedFile
	}
	changed := false
	for name, raw := range members {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			continue
		}
		kept := slices.DeleteFunc(slices.Clone(list), isDenied)
		if len(kept) == len(list) {
			continue
		}
		changed = true
		var err error
		if members[name], err = json.Marshal(kept); err != nil {
			return nil, err
		}
	}
	if !changed {
		return result, nil
	}
	if outside > 0 {
		var note string
		_ = json.Unmarshal(members["note"], &note) // absent: ""
		note = strings.TrimSpace(fmt.Sprintf("%s Left out, in files outside of the session's directories: %d.", note, outside))
		members["note"], _ = json.Marshal(note)
	}
	return json.Marshal(members)
}

var errOutside = domain.Errorf(domain.KindPermissionDenied, "the editor's file is outside of the session's directories")

var errDeniedFile = domain.Errorf(domain.KindPermissionDenied, "a rule denies this agent to read the file")

// editorArguments returns the arguments of a tool for an editor, with an absolute path.
func editorArguments(h *hub.Hub, s domain.TurnInSession, raw json.RawMessage, denied func(path string) bool) (map[string]json.RawMessage, error) {
	arguments := map[string]json.RawMessage{}
	if raw = protocol.OrAbsent(raw); raw != nil && json.Unmarshal(raw, &arguments) != nil {
		return nil, domain.Invalid("arguments", "object", "another value")
	}
	named, ok := arguments["path"]
	if !ok {
		return arguments, nil
	}
	var path string
	if json.Unmarshal(named, &path) != nil || path == "" {
		return nil, domain.Invalid("arguments.path", "the path of a file", string(named))
	}
	path, err := h.SessionFile(s, path)
	if err != nil {
		return nil, err
	}
	if denied(path) {
		return nil, errDeniedFile
	}
	arguments["path"], err = json.Marshal(path)
	return arguments, err
}
