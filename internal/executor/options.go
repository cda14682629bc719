package executor

import (
	"log/slog"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// Options configure an Executor. The zero value means the defaults.
type Options struct {
	// Logger gets what happens. Default: nothing is logged. It never gets a
	// key; agents' output only at debug.
	Logger *slog.Logger
	// Grace is how an agent is ended.
	Grace Grace
	// StartTimeout is how long an agent may take to answer initialize. Opening
	// a session may take four times as long. Default 30 s.
	StartTimeout time.Duration
	// SilentAfter is how long an agent may give no sign of life before that is
	// told, and SilentToolAfter the same in the middle of a tool call. Default
	// 5 s and 30 s.
	SilentAfter, SilentToolAfter time.Duration
	// Subreaper is a command that calls [process.RunSubreaper] with the arguments that follow its own:
	// it runs each command of the configuration, and leaves nothing of it behind. Linux only.
	// Default: none, so that what hides from its process group and its mark outlives its command.
	Subreaper []string
	// Exit, if set, is called when Shutdown is done, before its reply goes out.
	Exit func()
	// EditorFiles, if set, are asked for what agents read.
	EditorFiles catalog.EditorFiles
}

// Grace is how long each step of ending an agent may take before the next
// harsher one: session/cancel, SIGINT, SIGTERM, and last SIGKILL to the group.
type Grace struct {
	Cancel    time.Duration // after session/cancel; default 3 s
	Interrupt time.Duration // after SIGINT; default 2 s
	Terminate time.Duration // after SIGTERM; default 2 s
	HangUp    time.Duration // after SIGHUP, of a terminal's program; default 1 s
}
