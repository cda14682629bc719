package protocol

import (
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

type StartTerminalParams struct {
	CWD             string            `json:"cwd,omitempty" doc:"The working directory. Default: the project's root."`
	Program         string            `json:"program,omitempty" doc:"The program. Default: the user's shell."`
	Args            []string          `json:"args,omitempty" doc:"The program's arguments."`
	Env             map[string]string `json:"env,omitempty" doc:"Variables in addition to those that every terminal gets."`
	UseTmux         bool              `json:"use_tmux,omitempty" doc:"Run tmux, so that the terminal outlives the daemon."`
	TmuxSessionName string            `json:"tmux_session_name,omitempty" doc:"The tmux session. An existing one is joined; program and args, if any, then get a window of their own. tmux allows no : and . in a name; they become _."`
	TmuxWindowName  string            `json:"tmux_window_name,omitempty" doc:"The tmux window."`
	Cols            *uint             `json:"cols,omitempty" doc:"Columns. Default 80, also for 0."`
	Rows            *uint             `json:"rows,omitempty" doc:"Rows. Default 24, also for 0."`
	Descriptor      bool              `json:"descriptor,omitempty" doc:"Pass the terminal's file descriptor with the reply (SCM_RIGHTS, only on a Unix socket). The client then reads and writes it, and gets no terminal.output."`

	Form *EventForm `json:"-"` // of a dialect
}

type StartTerminalResult struct {
	TerminalID string `json:"terminal_id"`
	PTYPID     int    `json:"pty_pid" doc:"Process id of the program in the terminal."`
}

// An Encoding is the encoding of a terminal's bytes in a string.
type Encoding string

// Accepted implements schema.Enum.
func (Encoding) Accepted() []string {
	return []string{catalog.EncodingUTF8, catalog.EncodingBase64}
}

type WriteTerminalParams struct {
	TerminalID string   `json:"terminal_id" doc:"The terminal."`
	Data       string   `json:"data" doc:"The input."`
	Encoding   Encoding `json:"encoding,omitempty" doc:"Encoding of data. Default utf-8."`
}

type ResizeTerminalParams struct {
	TerminalID string `json:"terminal_id" doc:"The terminal."`
	Cols       uint   `json:"cols" doc:"Columns, at least 1."`
	Rows       uint   `json:"rows" doc:"Rows, at least 1."`
}

type CloseTerminalParams struct {
	TerminalID string `json:"terminal_id" doc:"The terminal."`
}

func (p CloseTerminalParams) Check() error { return NotEmpty("terminal_id", p.TerminalID) }

type CloseTerminalResult struct {
	Closed bool `json:"closed"`
}

// A Terminal is a terminal in the form for clients.
type Terminal struct {
	TerminalID  string    `json:"terminal_id"`
	PTYPID      int       `json:"pty_pid" doc:"Process id of the program in the terminal; 0 if unknown."`
	Program     string    `json:"program"`
	Args        []string  `json:"args"`
	CWD         string    `json:"cwd"`
	Cols        int       `json:"cols,omitempty" doc:"Absent for an agent's terminal, which has no size."`
	Rows        int       `json:"rows,omitempty"`
	TmuxSession string    `json:"tmux_session,omitempty" doc:"The tmux session that it shows."`
	Turn        string    `json:"turn,omitempty" doc:"The turn whose agent runs the terminal, such as 12.3."`
	TurnUUID    string    `json:"turn_uuid,omitempty"`
	ReadOnly    bool      `json:"read_only" doc:"An agent's terminal: clients can only watch it."`
	Attached    int       `json:"attached" doc:"Number of connections that watch it."`
	Taken       bool      `json:"taken" doc:"A connection has its descriptor, so others cannot watch it."`
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
	Cols       *uint  `json:"cols,omitempty" doc:"With rows: the terminal's new size for all that watch it. Absent or 0: no change."`
	Rows       *uint  `json:"rows,omitempty" doc:"See cols."`
	Descriptor bool   `json:"descriptor,omitempty" doc:"Pass the terminal's file descriptor with the reply (SCM_RIGHTS, only on a Unix socket). Until terminal.detach or its end the client reads and writes it, and gets no terminal.output. Refused while other connections watch."`
}

type AttachTerminalResult struct {
	Terminal
	Recent         string   `json:"recent,omitempty" doc:"With descriptor: recent output from before the reply."`
	RecentEncoding Encoding `json:"recent_encoding,omitempty" doc:"Encoding of recent."`
}

type DetachTerminalResult struct {
	Detached bool `json:"detached" doc:"false: this connection did not watch the terminal."`
}
