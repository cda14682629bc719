package cli

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/logging"
)

// settings are what flags and environment say.
type settings struct {
	host.Settings

	json  bool
	stdio bool
}

// environment names the variable that stands in for a flag.
var environment = map[string]string{
	"log-level":        "DUET_RPC_LOG_LEVEL",
	"root":             "DUET_ROOT",
	"read-timeout":     "DUET_RPC_READ_TIMEOUT",
	"max-frame-bytes":  "DUET_RPC_MAX_FRAME_BYTES",
	"max-header-bytes": "DUET_RPC_MAX_HEADER_BYTES",
}

func (s *settings) addFlags(root *cobra.Command) {
	s.LogLevel = logging.Level(slog.LevelInfo)
	s.Limits = frame.Limits{MaxFrame: frame.DefaultMaxFrame, MaxHeader: frame.DefaultMaxHeader, Timeout: frame.DefaultTimeout}
	f := root.PersistentFlags()
	f.Var((*levelFlag)(&s.LogLevel), "log-level", "how much to log: debug, info, warn or error")
	f.BoolVar(&s.NoColor, "no-color", false, "no colour on a terminal")
	f.BoolVar(&s.json, "json", false, "print JSON instead of text")
	f.BoolVar(&s.stdio, "stdio", false, "serve on standard input and output, even if they are a terminal")
	f.BoolVar(&s.TestMethods, "test-methods", false, "offer the methods test.sleep, test.fail and test.panic, for authors of clients")
	f.StringArrayVar(&s.Listen, "listen", nil, "path of another socket to listen on; may be given several times")
	f.StringVar(&s.Root, "root", "", "the project (default: the nearest with .duet, .duet.toml or .git, else this directory)")
	f.Var((*durationFlag)(&s.Limits.Timeout), "read-timeout", "how long one message may take to arrive, such as 30s")
	f.Var((*bytesFlag)(&s.Limits.MaxFrame), "max-frame-bytes", "the longest message that is accepted")
	f.Var((*bytesFlag)(&s.Limits.MaxHeader), "max-header-bytes", "the longest header that is accepted")
	f.DurationVar(&s.AnswerWithin, "answer-within", 5*time.Second, "how long a hub may take to answer who comes to it")
	_ = f.MarkHidden("answer-within")                                                                           // for tests
	_ = root.RegisterFlagCompletionFunc("listen", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)) // names of files
	directories(root, "root")
	_ = root.RegisterFlagCompletionFunc("log-level", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return s.LogLevel.Accepted(), cobra.ShellCompDirectiveNoFileComp
	})
}

// complete takes from the environment what no flag said.
func (s *settings) complete(cmd *cobra.Command) error {
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

var (
	_ pflag.Value = (*levelFlag)(nil)
	_ pflag.Value = (*durationFlag)(nil)
	_ pflag.Value = (*bytesFlag)(nil)
)

type levelFlag logging.Level

func (l *levelFlag) String() string { return logging.Level(*l).String() }
func (l *levelFlag) Type() string   { return "level" }

func (l *levelFlag) Set(text string) error {
	return (*logging.Level)(l).UnmarshalText([]byte(text))
}

// durationFlag is a positive duration; a number alone means seconds.
type durationFlag time.Duration

func (d *durationFlag) String() string { return time.Duration(*d).String() }
func (d *durationFlag) Type() string   { return "duration" }

func (d *durationFlag) Set(text string) error {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		text += "s"
	}
	v, err := time.ParseDuration(text)
	if err != nil || v <= 0 {
		return fmt.Errorf("it must be a time above 0, such as 30s or 500ms")
	}
	*d = durationFlag(v)
	return nil
}

// bytesFlag is a positive number of bytes.
type bytesFlag int

func (b *bytesFlag) String() string { return strconv.Itoa(int(*b)) }
func (b *bytesFlag) Type() string   { return "bytes" }

func (b *bytesFlag) Set(text string) error {
	const most = 1 << 30
	v, err := strconv.Atoi(text)
	if err != nil || v <= 0 || v > most {
		return fmt.Errorf("it must be a number of bytes from 1 to %d, such as 10485760", most)
	}
	*b = bytesFlag(v)
	return nil
}

// logGrace is how long the end of a command waits for its log to be written.
const logGrace = 400 * time.Millisecond
