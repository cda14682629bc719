// Package invocation is what all commands share: what the flags of the program say, how
// arguments are taken, and how a command reaches the project's hub. A command that has a
// package of its own stands on it as the others do.
package invocation

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/cli/flagvalue"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
)

// Settings are what flags and environment say. They are complete when a command runs.
type Settings struct {
	hubprocess.Settings

	JSON  bool // print JSON instead of text
	Stdio bool // serve on standard input and output, even if they are a terminal
}

// environment names the variable that stands in for a flag.
var environment = map[string]string{
	"log-level":        "DUET_RPC_LOG_LEVEL",
	"root":             "DUET_ROOT",
	"read-timeout":     "DUET_RPC_READ_TIMEOUT",
	"max-frame-bytes":  "DUET_RPC_MAX_FRAME_BYTES",
	"max-header-bytes": "DUET_RPC_MAX_HEADER_BYTES",
}

// AddFlags adds the flags that all commands have.
func (s *Settings) AddFlags(root *cobra.Command) {
	s.LogLevel = logging.Level(slog.LevelInfo)
	s.Limits = frame.Limits{MaxFrame: frame.DefaultMaxFrame, MaxHeader: frame.DefaultMaxHeader, Timeout: frame.DefaultTimeout}
	f := root.PersistentFlags()
	f.Var((*flagvalue.Level)(&s.LogLevel), "log-level", "how much to log: debug, info, warn or error")
	f.BoolVar(&s.NoColor, "no-color", false, "no colour on a terminal")
	f.BoolVar(&s.JSON, "json", false, "print JSON instead of text")
	f.BoolVar(&s.Stdio, "stdio", false, "serve on standard input and output, even if they are a terminal")
	f.BoolVar(&s.TestMethods, "test-methods", false, "offer the methods test.sleep, test.fail and test.panic, for authors of clients")
	f.StringArrayVar(&s.Listen, "listen", nil, "path of another socket to listen on; may be given several times")
	f.StringVar(&s.Root, "root", "", "the project (default: the nearest with .duet.toml, .git or state, else this directory)")
	f.Var((*flagvalue.Duration)(&s.Limits.Timeout), "read-timeout", "how long one message may take to arrive, such as 30s")
	f.Var((*flagvalue.Bytes)(&s.Limits.MaxFrame), "max-frame-bytes", "the longest message that is accepted")
	f.Var((*flagvalue.Bytes)(&s.Limits.MaxHeader), "max-header-bytes", "the longest header that is accepted")
	f.DurationVar(&s.AnswerWithin, "answer-within", 5*time.Second, "how long a hub may take to answer who comes to it")
	_ = f.MarkHidden("answer-within")                                                                           // for tests
	_ = root.RegisterFlagCompletionFunc("listen", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)) // names of files
	Directories(root, "root")
	_ = root.RegisterFlagCompletionFunc("log-level", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return s.LogLevel.Accepted(), cobra.ShellCompDirectiveNoFileComp
	})
}

// Complete takes from the environment what no flag said.
func (s *Settings) Complete(cmd *cobra.Command) error {
	for _, flag := range slices.Sorted(maps.Keys(environment)) {
		name := environment[flag]
		value := os.Getenv(name)
		if value == "" || cmd.Flags().Changed(flag) {
			continue
		}
		if err := cmd.Flags().Lookup(flag).Value.Set(value); err != nil {
			return fmt.Errorf("environment variable %s: invalid value %q: %w", name, value, err)
		}
	}
	if os.Getenv("NO_COLOR") != "" {
		s.NoColor = true
	}
	return nil
}

// LevelGiven reports whether the user has said how much is logged.
func (s *Settings) LevelGiven(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("log-level") || os.Getenv(environment["log-level"]) != ""
}
