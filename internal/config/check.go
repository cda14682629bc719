package config

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What limits may be.
const (
	leastRuns, mostRuns       = 1, 100
	leastIdle, mostIdle       = 0, 1000
	leastQueue, mostQueue     = 1, 100_000
	leastTimeout, mostTimeout = time.Second, 168 * time.Hour
	mostStartTimeout          = time.Hour
)

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
)

// madeOf tells whether s begins with a byte of first and goes on with bytes of
// rest.
func madeOf(s, first, rest string) bool {
	return s != "" && strings.IndexByte(first, s[0]) >= 0 && strings.Trim(s[1:], rest) == ""
}

// A check's error says what is expected, to follow "expected".

func anything(string) error { return nil }

func checkName(s string) error {
	if len(s) > 64 || !madeOf(s, letters+digits, letters+digits+"._-") {
		return errors.New("a name of up to 64 letters, digits, dots, dashes and underscores that begins with a letter or digit")
	}
	return nil
}

func checkVariable(s string) error {
	if !madeOf(s, letters+"_", letters+digits+"_") {
		return errors.New("the name of an environment variable, such as ANTHROPIC_API_KEY")
	}
	return nil
}

// maxGlob bounds a pattern, in bytes: each question is held against all.
const maxGlob = 1024

func checkGlob(s string) error {
	if len(s) > maxGlob {
		return fmt.Errorf("a pattern of at most %d bytes", maxGlob)
	}
	if _, err := path.Match(s, ""); err != nil {
		return errors.New("a pattern with * ? [ab] (a [ that is meant is written \\[)")
	}
	return nil
}

func checkSafe(s string) error {
	if s != "*" && !filepath.IsAbs(s) && !strings.HasPrefix(s, "~/") {
		return errors.New(`the path of a directory, absolute or from ~/ on (with /* at its end all below it), or "*"`)
	}
	return nil
}

func oneOf(accepted ...string) func(string) error {
	return func(s string) error {
		if slices.Contains(accepted, s) {
			return nil
		}
		quoted := make([]string, len(accepted))
		for i, a := range accepted {
			quoted[i] = strconv.Quote(a)
		}
		last := len(quoted) - 1
		return fmt.Errorf("%s or %s", strings.Join(quoted[:last], ", "), quoted[last])
	}
}

func checkHub(s string) error { return oneOf(HubEmbedded, HubDaemon)(s) }

func wholeRange(least, most int) string {
	return fmt.Sprintf("a whole number from %d to %d", least, most)
}

func durationRange(least, most time.Duration) string {
	return fmt.Sprintf(`a time from %s to %s, such as "90s" or "2h"`, shortDuration(least), shortDuration(most))
}

// shortDuration writes 2h0m0s as 2h.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
