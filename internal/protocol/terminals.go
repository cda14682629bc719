package protocol

import (
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

type SpawnTerminalParams struct {
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

type SpawnTerminalResult struct {
	TerminalID string `json:"terminal_id"`
	PTYPID     int    `json:"pty_pid" doc:"The process in the terminal."`
}

// An Encoding is how a terminal's bytes are written as a string.
type Encoding string

// Accepted implements schema.Enum.
func (Encoding) Accepted() []string {
	return []string{catalog.EncodingUTF8, catalog.EncodingBase64}
}

type WriteTerminalParams struct {
	TerminalID string   `json:"terminal_id" doc:"The terminal."`
	Data       string   `json:"data" doc:"What to type."`
	Encoding   Encoding `json:"encoding,omitempty" doc:"Of data; utf-8 unless told."`
}

type ResizeTerminalParams struct {
	TerminalID string `json:"terminal_id" doc:"The terminal."`
	Cols       uint   `json:"cols" doc:"Columns, from 1 on."`
	Rows       uint   `json:"rows" doc:"Rows, from 1 on."`
}

type CloseTerminalParams struct {
	TerminalID string `json:"terminal_id" doc:"The terminal."`
}

func (p CloseTerminalParams) Check() error { return NotEmpty("terminal_id", p.TerminalID) }

type CloseTerminalResult struct {
	Closed bool `json:"closed"`
}

// A Terminal is a terminal as clients see it.
type Terminal struct {
	TerminalID  string    `json:"terminal_id"`
	PTYPID      int       `json:"pty_pid" doc:"The process in the terminal; 0 if that is not known."`
	Program     string    `json:"program"`
	Args        []string  `json:"args"`
	CWD         string    `json:"cwd"`
	Cols        int       `json:"cols,omitempty" doc:"Absent for an agent's terminal, which has no size."`
	Rows        int       `json:"rows,omitempty"`
	TmuxSession string    `json:"tmux_session,omitempty" doc:"The tmux session that it shows."`
	TaskID      string    `json:"task_id,omitempty" doc:"The task whose agent runs it."`
	SessionID   string    `json:"session_id,omitempty" doc:"The same, as a session."`
	ReadOnly    bool      `json:"read_only" doc:"It is an agent's: it can be watched, and no more."`
	Attached    int       `json:"attached" doc:"How many connections watch it."`
	Taken       bool      `json:"taken" doc:"A connection has its descriptor; nobody else can watch it."`
	StartedAt   time.Time `json:"started_at"`
}

// Texts implements shortenable.
func (i *Terminal) Texts() []*string {
	list := []*string{&i.Program, &i.CWD}
	for n := range i.Args {
		list = append(list, &i.Args[n])
	}
	return list
}

type TerminalList struct {
	Terminals []*Terminal `json:"terminals"`
}

type AttachTerminalParams struct {
	TerminalID string `json:"terminal_id" doc:"The terminal."`
	Cols       *uint  `json:"cols,omitempty" doc:"With rows: the size that the terminal gets, for all who watch it; absent or 0: it stays."`
	Rows       *uint  `json:"rows,omitempty" doc:"See cols."`
	Descriptor bool   `json:"descriptor,omitempty" doc:"Pass the terminal's descriptor with the reply (SCM_RIGHTS, on a Unix socket alone): until terminal.detach, or its end, this connection reads and writes it, and no terminal_output comes. Refused while others watch."`
}

type AttachTerminalResult struct {
	Terminal
	Recent         string   `json:"recent,omitempty" doc:"With the descriptor: what was printed lately, before it was handed over."`
	RecentEncoding Encoding `json:"recent_encoding,omitempty" doc:"Of recent."`
}

type DetachTerminalResult struct {
	Detached bool `json:"detached" doc:"False if this connection did not watch it."`
}
