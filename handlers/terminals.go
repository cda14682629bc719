package handlers

import (
	"context"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerTerminals registers spawn_terminal (the executor catalog) and what belongs to it.
func registerTerminals(reg *server.Registry, d Domain, w *watching) {
	t := terminals{d, w}
	f := dialect.Executor
	handle(reg, d, f, "spawn_terminal", t.spawn, server.LongRunning(),
		server.Doc("Starts a program in a terminal, which lives on when this connection has gone. What it prints comes as events terminal_output, its end as terminal_exit, to this connection without a subscription."))
	handle(reg, d, f, "terminal.list", t.list, server.Doc("Lists the terminals that run, the oldest first; those of agents, too."))
	handle(reg, d, f, "terminal.attach", t.attach, server.LongRunning(),
		server.Doc("Watches a terminal: what it printed lately, what it prints and its end come as events to this connection, as to who started it. Any number of connections may watch one. An agent's terminal can be watched, and no more."))
	handle(reg, d, f, "terminal.detach", t.detach, server.LongRunning(),
		server.Doc("Ends what spawn_terminal or terminal.attach began for this connection; the program goes on. A descriptor is given back: it must not be read any more when this is called."))
	handle(reg, d, f, "terminal.write", t.write, server.Doc("Types into a terminal; one need not watch it."))
	handle(reg, d, f, "terminal.resize", t.resize, server.Doc("Changes a terminal's size, for all who watch it."))
	handle(reg, d, f, "terminal.close", t.close, server.Doc("Closes a terminal and ends what runs in it."))
}

type terminals struct {
	Domain
	watching *watching
}

type spawnParams struct {
	SessionToken    string            `json:"session_token,omitempty" doc:"Optional; one that is wrong is refused."`
	CWD             string            `json:"cwd,omitempty" doc:"The directory in which it starts; absent: the project's root."`
	Shell           string            `json:"shell,omitempty" doc:"The program; absent: the user's shell."`
	Args            []string          `json:"args,omitempty" doc:"Arguments of the program."`
	Env             map[string]string `json:"env,omitempty" doc:"Its environment, beyond what every terminal gets."`
	UseTmux         bool              `json:"use_tmux,omitempty" doc:"Run tmux, so that the terminal outlives us."`
	TmuxSessionName string            `json:"tmux_session_name,omitempty" doc:"The tmux session: joined if it is there, with shell and args in a window of their own if there are any. tmux has no : and no . in a name; they become _."`
	TmuxWindowName  string            `json:"tmux_window_name,omitempty" doc:"The tmux window."`
	Cols            *uint             `json:"cols,omitempty" doc:"Columns; 80 unless above 0."`
	Rows            *uint             `json:"rows,omitempty" doc:"Rows; 24 unless above 0."`
	Descriptor      bool              `json:"descriptor,omitempty" doc:"Pass the terminal's descriptor with the reply (SCM_RIGHTS, on a Unix socket alone): this connection reads and writes it, and no terminal_output comes."`
}

func (p spawnParams) check() error {
	return first(cells("cols", p.Cols), cells("rows", p.Rows), checkEnv(p.Env))
}

// checkEnv refuses what cannot stand in an environment.
func checkEnv(env map[string]string) error {
	for name, value := range env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return server.InvalidParam(server.ParamError{
				Param: "env", Expected: "names that are not empty and have no =, and nothing with a NUL", Received: strconv.Quote(headline(name, promptShown)),
			})
		}
	}
	return nil
}

type spawnResult struct {
	TerminalID string `json:"terminal_id"`
	PTYPID     int    `json:"pty_pid" doc:"The process in the terminal."`
}

func (t terminals) spawn(ctx context.Context, h *hub.Hub, p spawnParams) (spawnResult, error) {
	if err := first(checkToken(h, p.SessionToken), checkDescriptor(ctx, p.Descriptor)); err != nil {
		return spawnResult{}, err
	}
	feed := t.newFeed(ctx)
	view, err := h.Terminals().Spawn(ctx, catalog.SpawnTerminalParams{
		SessionToken: p.SessionToken, CWD: p.CWD, Shell: p.Shell, Env: p.Env, UseTmux: p.UseTmux,
		TmuxSessionName: p.TmuxSessionName, TmuxWindowName: p.TmuxWindowName, Cols: orZero(p.Cols), Rows: orZero(p.Rows), Args: p.Args,
		Descriptor: p.Descriptor,
	}, feed.put)
	if err != nil {
		return spawnResult{}, err
	}
	return spawnResult{view.Terminal.ID, view.Terminal.PID}, t.begin(ctx, view, feed)
}

// An encoding is how a terminal's bytes are written as a string.
type encoding string

// Accepted implements schema.Enum.
func (encoding) Accepted() []string {
	return []string{catalog.EncodingUTF8, catalog.EncodingBase64}
}

type writeParams struct {
	TerminalID string   `json:"terminal_id" doc:"The terminal."`
	Data       string   `json:"data" doc:"What to type."`
	Encoding   encoding `json:"encoding,omitempty" doc:"Of data; utf-8 unless told."`
}

func (p writeParams) check() error {
	if err := need("terminal_id", p.TerminalID); err != nil {
		return err
	}
	if _, err := catalog.DecodeBytes(p.Data, string(p.Encoding)); err != nil {
		return server.InvalidParam(server.ParamError{Param: "data", Expected: "base64", Received: "something else"})
	}
	return nil
}

func (terminals) write(ctx context.Context, h *hub.Hub, p writeParams) (success, error) {
	err := h.Terminals().Write(ctx, catalog.TerminalWriteParams{TerminalID: p.TerminalID, Data: p.Data, Encoding: string(p.Encoding)})
	return success{err == nil}, err
}

type resizeParams struct {
	TerminalID string `json:"terminal_id" doc:"The terminal."`
	Cols       uint   `json:"cols" doc:"Columns, from 1 on."`
	Rows       uint   `json:"rows" doc:"Rows, from 1 on."`
}

func (p resizeParams) check() error {
	if err := need("terminal_id", p.TerminalID); err != nil {
		return err
	}
	return first(someCells("cols", p.Cols), someCells("rows", p.Rows))
}

func (terminals) resize(ctx context.Context, h *hub.Hub, p resizeParams) (success, error) {
	err := h.Terminals().Resize(ctx, catalog.TerminalResizeParams{TerminalID: p.TerminalID, Cols: int(p.Cols), Rows: int(p.Rows)})
	return success{err == nil}, err
}

type closeParams struct {
	TerminalID string `json:"terminal_id" doc:"The terminal."`
}

func (p closeParams) check() error { return need("terminal_id", p.TerminalID) }

type closeResult struct {
	Closed bool `json:"closed"`
}

func (terminals) close(ctx context.Context, h *hub.Hub, p closeParams) (closeResult, error) {
	r, err := h.Terminals().End(ctx, catalog.TerminalCloseParams{TerminalID: p.TerminalID})
	return closeResult{r.Closed}, err
}
