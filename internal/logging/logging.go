// Package logging selects the destination and the format of log lines: tint on a terminal, plain
// text everywhere else.
package logging

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
)

// Options are the options of [Open].
type Options struct {
	Level slog.Level
	// Path is a file to append to instead of standard error. If it cannot be opened, a warning
	// and all further lines go to standard error.
	Path string
	// NoColor turns colour off on a terminal.
	NoColor bool
	// Messages makes [Log.Messages] log messages, whatever the level.
	Messages bool
}

// A Log is a logger with its level and destination.
type Log struct {
	*slog.Logger
	Level *slog.LevelVar // may be changed while logging
	Sink  string         // "stderr", or the path of the file

	messages *slog.Logger // nil: messages are not logged
	out      *queue
}

// LogsMessages reports whether the environment enables message logging: DUET_RPC_DEBUG=1, or
// AIWG's name for it, AIWG_IPC_DEBUG=1.
func LogsMessages(getenv func(string) string) bool {
	for _, name := range []string{"DUET_RPC_DEBUG", "AIWG_IPC_DEBUG"} {
		if value := getenv(name); value != "" && value != "0" {
			return true
		}
	}
	return false
}

// maxMessage is how much of a message is logged, in bytes.
const maxMessage = 64 << 10

// Messages returns a function that logs each message, without its secrets, or nil if messages
// are not logged. with names the peer; sent is the direction of the message: to the peer or from
// it.
func (l *Log) Messages() func(with string, sent bool, message []byte) {
	if l.messages == nil {
		return nil
	}
	return func(with string, sent bool, message []byte) {
		direction := "received"
		if sent {
			direction = "sent"
		}
		text := Redact(message)
		attrs := []any{"peer", with, "bytes", len(message)}
		if len(text) > maxMessage {
			text = append(text[:maxMessage:maxMessage], "…"...)
		}
		l.messages.Info(direction, append(attrs, "message", string(text))...)
	}
}

// Open starts logging. It cannot fail: in the worst case lines are lost.
func Open(o Options) *Log {
	level := &slog.LevelVar{}
	level.Set(o.Level)
	sink, file := "stderr", os.Stderr
	var openErr error
	if o.Path != "" {
		f, err := OpenFile(o.Path)
		if err == nil {
			sink, file = o.Path, f
		}
		openErr = err
	}
	out := newQueue(file)
	l := &Log{Logger: slog.New(handler(out, level, o, file)), Level: level, Sink: sink, out: out}
	if o.Messages {
		l.messages = slog.New(handler(out, slog.LevelDebug, o, file))
	}
	if openErr != nil {
		l.Warn("the log file cannot be opened; logging to stderr instead", "err", openErr,
			"todo", "set DUET_RPC_LOG to a file in a directory that can be written")
	}
	return l
}

// OpenFile opens a file to append log lines to, and creates it if needed. It does not wait: a
// named pipe without a reader is an error.
func OpenFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|syscall.O_NONBLOCK, 0o600)
}

func handler(out io.Writer, level slog.Leveler, o Options, file *os.File) slog.Handler {
	if !term.IsTerminal(int(file.Fd())) {
		return slog.NewTextHandler(out, &slog.HandlerOptions{Level: level})
	}
	return tint.NewTextHandler(out, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: o.NoColor})
}

// WithoutMessages returns the same log with message logging off.
func (l *Log) WithoutMessages() *Log {
	quiet := *l
	quiet.messages = nil
	return &quiet
}

// Close writes the queue, for at most d.
func (l *Log) Close(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	l.out.close(ctx)
}

// Level is a log level as in configuration and on the wire: debug, info, warn or error, in any
// case.
type Level slog.Level

// Accepted lists the names; it makes Level an enum of package server.
func (Level) Accepted() []string { return []string{"debug", "info", "warn", "error"} }

func (l *Level) UnmarshalText(text []byte) error {
	name := strings.ToLower(string(text))
	if !slices.Contains(l.Accepted(), name) {
		return fmt.Errorf("unknown log level %q: it must be debug, info, warn or error", name)
	}
	return (*slog.Level)(l).UnmarshalText(text)
}

func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Slog converts the level to package slog's type.
func (l Level) Slog() slog.Level { return slog.Level(l) }

func (l Level) String() string { return strings.ToLower(slog.Level(l).String()) }
