package preview

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Limits of page messages. The store also keeps only the last ones.
const (
	mostText  = 8 << 10 // of a message or a stack, in bytes
	mostPlace = 2 << 10 // of an address, in bytes
	burst     = 100     // messages at once
	everyPart = 50 * time.Millisecond
)

// levels are the console levels that are stored unchanged.
var levels = []string{"log", "debug", "info", "warn", "error"}

// Say stores a page's console message and sends it to the watchers that want messages. session is
// an id of its session, "" for the last one. kept is false above the rate limit of 100 messages at
// once and 20 a second; the number of lost messages is stored.
func (p *Preview) Say(ctx context.Context, session string, m domain.PageMessage) (kept bool, err error) {
	s, err := p.opts.Run(ctx, session)
	if err != nil {
		return false, err
	}
	lost, ok := p.limiter.take(time.Now())
	if !ok {
		return false, nil
	}
	m.Session, m.Turn = s.Session.ID, s.Turn.ID
	p.clean(&m)
	said := []domain.PageMessage{m}
	if lost > 0 {
		said = append([]domain.PageMessage{{
			Kind: domain.PageConsole, Level: "warn",
			Text: fmt.Sprintf("(%d messages are missing here: pages sent them too fast)", lost), Session: m.Session,
			Turn: m.Turn,
		}}, said...)
	}
	err = p.opts.Write(ctx, func(t store.Tx) error {
		for i := range said {
			if err := keep(ctx, t, &said[i]); err != nil {
				return err
			}
		}
		t.AfterCommit(func() {
			for i := range said {
				message := said[i]
				message.HumanLayerSession = s.Turn.HumanLayerSession
				p.tell(Update{Said: &message})
			}
		})
		return nil
	})
	return err == nil, err
}

// keep adds a message, or counts it if it repeats the last one.
func keep(ctx context.Context, t store.Tx, m *domain.PageMessage) error {
	m.Count, m.Time = 1, t.Now()
	last, err := t.PageMessages(ctx, domain.PageFilter{Limit: 1})
	if err != nil {
		return err
	}
	if len(last) > 0 && last[0].Same(*m) {
		m.ID, m.Count = last[0].ID, last[0].Count+1
	}
	return t.PutPageMessage(m)
}

func (p *Preview) clean(m *domain.PageMessage) {
	if m.Kind == domain.PageConsole && !slices.Contains(levels, m.Level) {
		switch m.Level {
		case "warning":
			m.Level = "warn"
		default:
			m.Level = "log"
		}
	}
	for text, most := range map[*string]int{&m.Text: mostText, &m.Stack: mostText, &m.URL: mostPlace} {
		*text = cut(p.opts.WithoutKeys(m.Session, *text), most)
	}
	m.Line, m.Column = max(0, m.Line), max(0, m.Column)
}

// cut truncates a text between two characters.
func cut(text string, most int) string {
	const mark = "…"
	if len(text) <= most {
		return text
	}
	end := most - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// Messages returns page messages, the oldest first. session is an id of a session or a turn;
// "" for all.
func (p *Preview) Messages(ctx context.Context, session string, f domain.PageFilter) ([]domain.PageMessage, error) {
	if session != "" {
		var err error
		if f.Turn, f.Session, err = p.opts.Scope(ctx, session); err != nil {
			return nil, err
		}
	}
	f.Limit = min(cmp.Or(f.Limit, 100), store.MostPageMessages)
	return p.opts.Store.PageMessages(ctx, f)
}

// limiter limits the rate of page messages.
type limiter struct {
	mu   sync.Mutex // guards the fields below
	full time.Time  // when a full burst is available again
	lost int        // lost since the last stored message
}

// take admits a message. lost is the number of messages refused since the last one.
func (l *limiter) take(now time.Time) (lost int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full.Before(now) {
		l.full = now
	}
	if l.full.Sub(now) > (burst-1)*everyPart {
		l.lost++
		return 0, false
	}
	l.full = l.full.Add(everyPart)
	lost, l.lost = l.lost, 0
	return lost, true
}
