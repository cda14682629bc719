// Package flagvalue has values of flags that are no plain words or numbers.
package flagvalue

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/duet-rpc/duet-rpc/internal/logging"
)

var (
	_ pflag.Value = (*Level)(nil)
	_ pflag.Value = (*Duration)(nil)
	_ pflag.Value = (*Bytes)(nil)
)

// Level is how much is logged, by its name.
type Level logging.Level

// String implements pflag.Value.
func (l *Level) String() string { return logging.Level(*l).String() }

// Type implements pflag.Value.
func (l *Level) Type() string { return "level" }

// Set implements pflag.Value.
func (l *Level) Set(text string) error {
	return (*logging.Level)(l).UnmarshalText([]byte(text))
}

// Duration is a positive duration; a number alone means seconds.
type Duration time.Duration

// String implements pflag.Value. None is "", of which help says nothing.
func (d *Duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// Type implements pflag.Value.
func (d *Duration) Type() string { return "duration" }

// Set implements pflag.Value.
func (d *Duration) Set(text string) error {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		text += "s"
	}
	v, err := time.ParseDuration(text)
	if err != nil || v <= 0 {
		return fmt.Errorf("it must be a time above 0, such as 30s or 500ms")
	}
	*d = Duration(v)
	return nil
}

// Bytes is a positive number of bytes.
type Bytes int

// String implements pflag.Value.
func (b *Bytes) String() string { return strconv.Itoa(int(*b)) }

// Type implements pflag.Value.
func (b *Bytes) Type() string { return "bytes" }

// Set implements pflag.Value.
func (b *Bytes) Set(text string) error {
	const most = 1 << 30
	v, err := strconv.Atoi(text)
	if err != nil || v <= 0 || v > most {
		return fmt.Errorf("it must be a number of bytes from 1 to %d, such as 10485760", most)
	}
	*b = Bytes(v)
	return nil
}

// AgentOptions are the values of a flag that sets options of an agent, ID=VALUE each, by
// their ids.
func AgentOptions(flags []string) (map[string]string, error) {
	values := make(map[string]string, len(flags))
	for _, text := range flags {
		id, value, ok := strings.Cut(text, "=")
		if !ok || id == "" {
			return nil, fmt.Errorf("--option takes ID=VALUE, got %q", text)
		}
		values[id] = value
	}
	return values, nil
}
