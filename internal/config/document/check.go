package document

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
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

// The checks of values below give errors that say what is expected, to follow "expected".

// Anything is right.
func Anything(string) error { return nil }

// CheckName checks the name of an agent, a service or alike.
func CheckName(s string) error {
	if len(s) > 64 || !madeOf(s, letters+digits, letters+digits+"._-") {
		return errors.New("a name of up to 64 letters, digits, dots, dashes and underscores that begins with a letter or digit")
	}
	return nil
}

// CheckVariable checks the name of an environment variable.
func CheckVariable(s string) error {
	if !madeOf(s, letters+"_", letters+digits+"_") {
		return errors.New("the name of an environment variable, such as ANTHROPIC_API_KEY")
	}
	return nil
}

// maxGlob bounds a pattern, in bytes: each question is held against all.
const maxGlob = 1024

// CheckGlob checks a pattern as [path.Match] knows them, of at most 1,024 bytes.
func CheckGlob(s string) error {
	if len(s) > maxGlob {
		return fmt.Errorf("a pattern of at most %d bytes", maxGlob)
	}
	if _, err := path.Match(s, ""); err != nil {
		return errors.New("a pattern with * ? [ab] (a [ that is meant is written \\[)")
	}
	return nil
}

// OneOf checks that a value is one of some.
func OneOf(accepted ...string) func(string) error {
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

// WholeRange says in words which numbers are right.
func WholeRange(least, most int) string {
	return fmt.Sprintf("a whole number from %d to %d", least, most)
}

func DurationRange(least, most time.Duration) string {
	return fmt.Sprintf(`a time from %s to %s, such as "90s" or "2h"`, ShortDuration(least), ShortDuration(most))
}

// ShortDuration writes 2h0m0s as 2h.
func ShortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
