package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/duet-rpc/duet-rpc/internal/logging"
)

// This file has values of flags that are no plain words or numbers.

var (
	_ pflag.Value = (*levelValue)(nil)
	_ pflag.Value = (*durationValue)(nil)
	_ pflag.Value = (*bytesValue)(nil)
)

// levelValue is how much is logged, by its name.
type levelValue logging.Level

// String implements pflag.Value.
func (l *levelValue) String() string { return logging.Level(*l).String() }

// Type implements pflag.Value.
func (l *levelValue) Type() string { return "level" }

// Set implements pflag.Value.
func (l *levelValue) Set(text string) error {
	return (*logging.Level)(l).UnmarshalText([]byte(text))
}

// durationValue is a positive duration; a number alone means seconds.
type durationValue time.Duration

// String implements pflag.Value. None is "", of which help says nothing.
func (d *durationValue) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// Type implements pflag.Value.
func (d *durationValue) Type() string { return "duration" }

// Set implements pflag.Value.
func (d *durationValue) Set(text string) error {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		text += "s"
	}
	v, err := time.ParseDuration(text)
	if err != nil || v <= 0 {
		return fmt.Errorf("it must be a time above 0, such as 30s or 500ms")
	}
	*d = durationValue(v)
	return nil
}

// bytesValue is a positive number of bytes.
type bytesValue int

// String implements pflag.Value.
func (b *bytesValue) String() string { return strconv.Itoa(int(*b)) }

// Type implements pflag.Value.
func (b *bytesValue) Type() string { return "bytes" }

// Set implements pflag.Value.
func (b *bytesValue) Set(text string) error {
	const most = 1 << 30
	v, err := strconv.Atoi(text)
	if err != nil || v <= 0 || v > most {
		return fmt.Errorf("it must be a number of bytes from 1 to %d, such as 10485760", most)
	}
	*b = bytesValue(v)
	return nil
}

// agentOptionsValue are the values of a flag that sets options of an agent, ID=VALUE each, by
// their ids.
func agentOptionsValue(flags []string) (map[string]string, error) {
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
