package budget

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// near is the part of a limit at which people are warned.
const near = 0.8

// A limit is one limit, and how much of it is used.
type limit struct {
	key        string  // in the configuration
	part       float64 // of it that is used
	text, most string  // what is used, and what may be
}

func (l limit) isReached() bool { return l.part >= 1 }

func (l limit) reached(who string) string {
	return fmt.Sprintf("%s %s, of %s that there may be", who, l.phrase(), l.most)
}

func (l limit) isNear(who string) string {
	return fmt.Sprintf("%s %s of %s", who, l.phrase(), l.most)
}

// isOf reports whether what was asked for with a conversation has this limit, so that
// raising it in the configuration would change nothing.
func (l limit) isOf(s *domain.Settings) bool {
	if s == nil {
		return false
	}
	switch b := s.Budget; l.key {
	case "turns":
		return b.Turns > 0 || s.MaxTurns > 0
	case "time":
		return b.Time > 0
	case "tokens":
		return b.Tokens > 0
	case "cost":
		return b.CostUSD > 0
	case "repeats":
		return b.Repeats > 0
	}
	return false
}

// option is what a limit is asked for with.
func (l limit) option() string {
	if l.key == "repeats" { // editors alone ask for that
		return "budget.repeats"
	}
	return "prompt --max-" + l.key
}

// phrase is what is used, with its verb.
func (l limit) phrase() string {
	switch l.key {
	case "repeats":
		return l.text
	case "time":
		return "worked " + l.text
	case "cost":
		return "cost " + l.text
	case "tokens":
		return "used " + l.text
	}
	return "had " + l.text
}

// spend holds time, tokens and cost against their limits.
func spend(limits config.BudgetLimits, u domain.Usage) (out []limit) {
	if most := limits.Time; most != nil {
		out = append(out, limit{
			key: "time", part: u.Time.Seconds() / most.Seconds(), text: inWords(u.Time), most: inWords(*most),
		})
	}
	if most := limits.Tokens; most != nil {
		// What was read from a cache is told beside the others, and costs, too.
		n := u.Tokens.Input + u.Tokens.Output + u.Tokens.CacheRead + u.Tokens.CacheWrite
		out = append(out, limit{key: "tokens", part: float64(n) / float64(*most), text: count(int(n), "token"), most: thousands(*most)})
	}
	if most := limits.Cost; most != nil {
		out = append(out, limit{key: "cost", part: u.Tokens.CostUSD / *most, text: dollars(u.Tokens.CostUSD), most: dollars(*most)})
	}
	return out
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return thousands(n) + " " + what
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func dollars(usd float64) string {
	if usd < 1 {
		return "$" + strconv.FormatFloat(usd, 'f', 4, 64)
	}
	return "$" + strconv.FormatFloat(usd, 'f', 2, 64)
}

// inWords is a time without the parts that are none: 2h, 90s as 1m30s, and fractions of
// a second only where it is short.
func inWords(d time.Duration) string {
	unit := time.Second
	if d < 10*time.Second {
		unit = 100 * time.Millisecond
	}
	s := d.Truncate(unit).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
