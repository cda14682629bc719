package logging

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

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
