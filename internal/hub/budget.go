package hub

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// This file interrupts turns that exceed a budget. It compares the usage that agents report with the
// limits of the turn, its session and the day. It warns before a limit is reached and
// interrupts the turn when it is.
//
// An interrupted turn can be continued: the new turn starts new accounts for the turn and the
// session. The account of a day starts at midnight.

// budgets returns the currently configured limits.
func (h *Hub) budgets() config.Budget { return h.opts.Configuration.Budget() }

// spend checks a turn's usage against its budgets and schedules the next check of its time budget.
func (h *Hub) spend(t store.Tx, live *liveTurn) error {
	if err := h.followClock(t); err != nil {
		return err
	}
	turn, err := t.Turn(h.ctx, live.turn.ID)
	if err != nil || turn.State.Ended() {
		return err
	}
	if err := h.budget.Used(t, turn); err != nil {
		return err
	}
	left, limited, err := h.budget.TimeLeft(t, turn)
	if err != nil || !limited {
		return err
	}
	t.AfterCommit(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.live[live.turn.ID] != live { // it has ended already
			return
		}
		live.budget = newClock(left, func() { h.active.Go(func() { h.timeUsed(live) }) })
		if live.asks {
			live.budget.pause()
		}
	})
	return nil
}

// timeUsed checks a turn's usage when its timer fires.
func (h *Hub) timeUsed(live *liveTurn) {
	err := h.write(h.ctx, func(t store.Tx) error { return h.spend(t, live) })
	if err != nil && h.ctx.Err() == nil {
		h.log.Warn("cannot compare the usage of a turn with its budget", "err", err)
	}
}

// budgetGuard checks the usage of turns. Its methods may be called from any goroutine, except that
// those with a transaction belong to the store's writer.
type budgetGuard struct {
	hub *Hub

	mu       sync.Mutex // guards accounts
	accounts map[int64]*account
}

// account holds what the guard knows of an active turn and the store does not.
type account struct {
	asked   *domain.Settings // the session's settings when the account was opened
	turns   int
	between bool   // a tool call has ended since the last one began
	call    string // fingerprint of the last tool call that ended
	repeats int    // its consecutive repetitions
	warned  map[string]bool
}

// Close drops the account of a turn that has ended.
func (g *budgetGuard) Close(turn int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.accounts, turn)
}

func (g *budgetGuard) account(turn int64) *account {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.accounts[turn]
	if a == nil {
		a = &account{warned: make(map[string]bool)}
		g.accounts[turn] = a
	}
	return a
}

// Admit returns an error if the day's budget is used up. The error is safe to show to users.
func (g *budgetGuard) Admit(t store.Tx) error {
	day := g.hub.budgets().Day
	if day == (config.BudgetLimits{}) {
		return nil
	}
	if err := g.hub.followClock(t); err != nil {
		return err
	}
	used, err := g.usedToday(t)
	if err != nil {
		return err
	}
	for _, l := range spend(day, used) {
		if l.isReached() {
			return domain.Errorf(domain.KindBudget,
				"%s; nothing more is begun today, unless [budget.day] %s is raised",
				l.reached("the turns of this day have"), l.key)
		}
	}
	if day.Turns != nil && used.Turns >= *day.Turns { // the new turn would exceed it
		return domain.Errorf(domain.KindBudget, "%s; nothing more is begun today, unless [budget.day] turns is raised",
			limit{
				key: "turns", text: count(used.Turns, "prompt"), most: count(*day.Turns, "prompt"),
			}.reached("the turns of this day have"))
	}
	return nil
}

// Called counts a tool call that begins.
func (g *budgetGuard) Called(t store.Tx, turn domain.Turn) error {
	a := g.account(turn.ID)
	if a.turns > 0 && !a.between {
		return nil
	}
	a.between = false
	a.turns++
	rounds := g.ofTurn(t, turn).Rounds
	if rounds == nil {
		return nil
	}
	return g.judge(t, turn, domain.CodeTurnBudget, "turn", "this turn has", limit{
		key: "rounds", part: float64(a.turns-1) / float64(*rounds), // counts the beginning call
		text: count(a.turns-1, "round") + " of tool calls", most: count(*rounds, "round"),
	})
}

// CallEnded counts a tool call that has ended if it repeats the previous ones. Calls are equal if
// their tools and inputs are. Calls without a reported input are all different.
func (g *budgetGuard) CallEnded(t store.Tx, turn domain.Turn, tool string) error {
	a := g.account(turn.ID)
	a.between = true
	repeats := g.ofTurn(t, turn).Repeats
	if repeats == nil {
		return nil
	}
	item, err := t.ToolItem(g.hub.ctx, turn.ID, tool)
	if err != nil {
		return err
	}
	if len(item.Input) == 0 {
		a.call, a.repeats = "", 0
		return nil
	}
	call := item.Tool + "\x00" + string(item.Input)
	if call != a.call {
		a.call, a.repeats = call, 0
		delete(a.warned, "turn.repeats")
	}
	a.repeats++
	return g.judge(t, turn, domain.CodeTurnBudget, "turn", "this turn has", limit{
		key: "repeats", part: float64(a.repeats) / float64(*repeats),
		text: "made the same call of " + cmp.Or(item.Tool, "a tool") + " " + count(a.repeats, "time"),
		most: count(*repeats, "time"),
	})
}

// Used compares a turn's stored usage with all limits.
func (g *budgetGuard) Used(t store.Tx, turn domain.Turn) error {
	limits := g.hub.budgets()
	limits.Turn = g.ofTurn(t, turn)
	used := domain.Usage{Tokens: turn.Tokens}
	if limits.Turn.Time != nil {
		byTurn, err := g.usedByTurn(t, turn)
		if err != nil {
			return err
		}
		used.Time = byTurn.Time
	}
	for _, l := range spend(limits.Turn, used) {
		if err := g.judge(t, turn, domain.CodeTurnBudget, "turn", "this turn has", l); err != nil {
			return err
		}
	}
	if limits.Session != (config.BudgetLimits{}) {
		used, err := g.usedBySession(t, turn.Session)
		if err != nil {
			return err
		}
		if err := g.judgeAll(t, turn, domain.CodeSessionBudget, "session", "this session has", limits.Session, used); err != nil {
			return err
		}
	}
	if limits.Day == (config.BudgetLimits{}) {
		return nil
	}
	today, err := g.usedToday(t)
	if err != nil {
		return err
	}
	return g.judgeAll(t, turn, domain.CodeDayBudget, "day", "the turns of this day have", limits.Day, today)
}

// TimeLeft returns how long an active turn may continue until a time budget is nearly or fully used.
// limited is false if no time budget applies.
func (g *budgetGuard) TimeLeft(t store.Tx, turn domain.Turn) (left time.Duration, limited bool, err error) {
	limits := g.hub.budgets()
	limits.Turn = g.ofTurn(t, turn)
	for _, scope := range []struct {
		most *time.Duration
		used func() (domain.Usage, error)
	}{
		{limits.Turn.Time, func() (domain.Usage, error) { return g.usedByTurn(t, turn) }},
		{limits.Session.Time, func() (domain.Usage, error) { return g.usedBySession(t, turn.Session) }},
		{limits.Day.Time, func() (domain.Usage, error) { return g.usedToday(t) }},
	} {
		if scope.most == nil {
			continue
		}
		used, err := scope.used()
		if err != nil {
			return 0, false, err
		}
		next := *scope.most - used.Time
		if warn := time.Duration(near*float64(*scope.most)) - used.Time; warn > 0 {
			next = warn
		}
		if next = max(next, leastPause); !limited || next < left {
			left, limited = next, true
		}
	}
	return left, limited, nil
}

func (g *budgetGuard) judgeAll(
	t store.Tx, turn domain.Turn, code, scope, who string, limits config.BudgetLimits, used domain.Usage,
) error {
	all := spend(limits, used)
	if limits.Turns != nil {
		all = append(all, limit{
			key: "turns", part: float64(used.Turns-1) / float64(*limits.Turns), // the turn itself is counted
			text: count(used.Turns-1, "prompt"), most: count(*limits.Turns, "prompt"),
		})
	}
	for _, l := range all {
		if err := g.judge(t, turn, code, scope, who, l); err != nil {
			return err
		}
	}
	return nil
}

// judge interrupts a turn that has reached a limit and warns of one that is near.
func (g *budgetGuard) judge(t store.Tx, turn domain.Turn, code, scope, who string, l limit) error {
	where := "[budget." + scope + "] " + l.key
	more := "raise " + where
	if scope == "turn" && l.isOf(g.account(turn.ID).asked) {
		where, more = l.option(), "give it more with "+l.option()
	}
	if l.isReached() {
		what := more + ", or continue it: then a new account begins"
		if scope == "day" {
			what = more + ", or continue it tomorrow"
		}
		return g.interrupt(t, turn, code, l.reached(who)+"; "+what)
	}
	a := g.account(turn.ID)
	if l.part < near || a.warned[scope+"."+l.key] {
		return nil
	}
	a.warned[scope+"."+l.key] = true
	text := l.isNear(who) + " (" + where + "); the turn is interrupted when that is reached."
	return g.hub.transcript.BudgetNear(t, turn, strings.ToUpper(text[:1])+text[1:])
}

// interrupt ends a turn, unless it has ended or is ending.
func (g *budgetGuard) interrupt(t store.Tx, turn domain.Turn, code, message string) error {
	now, err := t.Turn(g.hub.ctx, turn.ID)
	if err != nil || now.State.Ended() || now.State == domain.Interrupting {
		return err
	}
	return g.hub.transition(t, &now, domain.Interrupting,
		outcome{reason: "budget_reached", code: code, message: message})
}

// ofTurn returns the limits of a turn: the configured ones, and lower ones that its session
// sets.
func (g *budgetGuard) ofTurn(t store.Tx, turn domain.Turn) config.BudgetLimits {
	limits := g.hub.budgets().Turn
	if repeats := config.UnattendedRepeats; limits.Repeats == nil &&
		(turn.Source == domain.SourceTrigger || turn.Source == domain.SourceGate) {
		limits.Repeats = &repeats
	}
	a := g.account(turn.ID)
	if a.asked == nil {
		session, err := t.Session(g.hub.ctx, turn.Session)
		if err != nil {
			return limits
		}
		a.asked = &session.Settings
	}
	return asked(*a.asked, limits)
}

// asked returns limits, replaced where the session's settings set their own.
func asked(s domain.Settings, limits config.BudgetLimits) config.BudgetLimits {
	b := s.Budget
	if turns := cmp.Or(b.Turns, s.MaxTurns); turns > 0 {
		limits.Rounds = &turns
	}
	if b.Time > 0 {
		limits.Time = &b.Time
	}
	if tokens := int(b.Tokens); tokens > 0 {
		limits.Tokens = &tokens
	}
	if b.CostUSD > 0 {
		limits.Cost = &b.CostUSD
	}
	if b.Repeats > 0 {
		limits.Repeats = &b.Repeats
	}
	return limits
}

// leastPause is the minimum time between two checks: rows hold the time of their last write.
const leastPause = 100 * time.Millisecond

// usedByTurn returns the usage of a turn. Queued turns behind it have used nothing.
func (g *budgetGuard) usedByTurn(t store.Tx, turn domain.Turn) (domain.Usage, error) {
	return t.Usage(g.hub.ctx, domain.UsageFilter{Session: turn.Session, After: turn.ID - 1}, t.Now())
}

// usedBySession returns the usage of a session's turns after the last one that exceeded a
// budget.
func (g *budgetGuard) usedBySession(t store.Tx, session int64) (domain.Usage, error) {
	last, err := t.LastWith(g.hub.ctx, session, domain.CodeSessionBudget)
	if err != nil {
		return domain.Usage{}, err
	}
	return t.Usage(g.hub.ctx, domain.UsageFilter{Session: session, After: last}, t.Now())
}

// usedToday returns the usage of the turns launched since midnight.
func (g *budgetGuard) usedToday(t store.Tx) (domain.Usage, error) {
	now := t.Now()
	y, m, d := now.Date()
	return t.Usage(g.hub.ctx, domain.UsageFilter{Since: time.Date(y, m, d, 0, 0, 0, 0, now.Location())}, now)
}

// near is the part of a limit at which the guard warns.
const near = 0.8

// limit is one limit and its used part.
type limit struct {
	key        string  // configuration key
	part       float64 // used part, from 0
	text, most string  // usage and limit, in words
}

func (l limit) isReached() bool { return l.part >= 1 }

func (l limit) reached(who string) string {
	return fmt.Sprintf("%s %s, of %s that there may be", who, l.phrase(), l.most)
}

func (l limit) isNear(who string) string {
	return fmt.Sprintf("%s %s of %s", who, l.phrase(), l.most)
}

// isOf reports whether the session itself set this limit, so that raising the configured one
// changes nothing.
func (l limit) isOf(s *domain.Settings) bool {
	if s == nil {
		return false
	}
	switch b := s.Budget; l.key {
	case "rounds":
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

// option returns the command-line option that sets the limit.
func (l limit) option() string {
	switch l.key {
	case "repeats": // only editors set this
		return "budget.repeats"
	case "rounds":
		return "prompt --max-turns"
	}
	return "prompt --max-" + l.key
}

// phrase returns the used amount with its verb.
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

// spend compares time, tokens and cost with their limits.
func spend(limits config.BudgetLimits, u domain.Usage) (out []limit) {
	if most := limits.Time; most != nil {
		out = append(out, limit{
			key: "time", part: u.Time.Seconds() / most.Seconds(), text: inWords(u.Time), most: inWords(*most),
		})
	}
	if most := limits.Tokens; most != nil {
		// Agents report cache reads separately; they cost too.
		n := u.Tokens.Input + u.Tokens.Output + u.Tokens.CacheRead + u.Tokens.CacheWrite
		out = append(out, limit{
			key: "tokens", part: float64(n) / float64(*most), text: count(int(n), "token"), most: thousands(*most),
		})
	}
	if most := limits.Cost; most != nil {
		out = append(out, limit{
			key: "cost", part: u.Tokens.CostUSD / *most, text: domain.Dollars(u.Tokens.CostUSD),
			most: domain.Dollars(*most),
		})
	}
	return out
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return thousands(n) + " " + what
}

// thousands formats 1234567 as 1,234,567.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// inWords formats a duration without zero parts: 2h, 1m30s. Only short durations keep fractions of
// a second.
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
