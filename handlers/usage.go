package handlers

import (
	"cmp"
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerUsage registers usage.get and turn.count.
func registerUsage(reg *server.Registry, d Domain) {
	u := usage{d}
	handle(reg, d, nativeFamily, "usage.get", u.get,
		server.Doc("Returns the tokens, cost and time that turns used, as their agents report them."))
	handle(reg, d, nativeFamily, "turn.count", countTurns, server.Doc("Counts the turns of all sessions by state."))
}

type usage struct{ Domain }

func countTurns(ctx context.Context, h *hub.Hub, _ none) (protocol.TurnCounts, error) {
	counts, err := h.Query().Counts(ctx)
	r := protocol.TurnCounts{States: counts}
	for _, n := range counts {
		r.Total += n
	}
	return r, err
}

func usageOf(u domain.Usage) protocol.Usage {
	return protocol.Usage{
		Turns: u.Turns, InputTokens: u.Tokens.Input, OutputTokens: u.Tokens.Output, CacheReadTokens: u.Tokens.CacheRead,
		CacheWriteTokens: u.Tokens.CacheWrite, CostUSD: u.Tokens.CostUSD, TimeMS: u.Time.Milliseconds(),
	}
}

// timeOrNone reads a time or a date.
func timeOrNone(param, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return day, nil
	}
	return time.Time{}, server.InvalidParam(server.ParamError{
		Param: param, Expected: "a time such as 2026-01-31T12:00:00Z, or a date such as 2026-01-31", Received: "another text",
	})
}

func checkUsage(p protocol.UsageParams) error {
	_, err := timeOrNone("since", p.Since)
	_, errUntil := timeOrNone("until", p.Until)
	switch domain.UsageBy(p.By) {
	case "", domain.UsageByDay, domain.UsageByAgent, domain.UsageBySession, domain.UsageByModel:
		return cmp.Or(err, errUntil)
	}
	return server.InvalidParam(server.ParamError{
		Param: "by", Expected: "what to group it by", Received: "another text", Accepted: []string{"day", "agent", "session", "model"},
	})
}

func (u usage) get(ctx context.Context, h *hub.Hub, p protocol.UsageParams) (r protocol.UsageResult, err error) {
	var f domain.UsageFilter
	f.Since, _ = timeOrNone("since", p.Since) // checked before
	f.Til, _ = timeOrNone("until", p.Until)
	if p.Session != "" {
		s, err := h.Query().Turn(ctx, string(p.Session))
		if err != nil {
			return r, err
		}
		f.Session = s.Session.ID
	}
	total, rows, err := h.Query().Usage(ctx, f, domain.UsageBy(p.By), u.Now())
	r.Total = usageOf(total)
	for _, row := range rows {
		if p.By == string(domain.UsageBySession) && row.Title == "" {
			if s, err := h.Query().Turn(ctx, row.Key); err == nil { // else it was deleted meanwhile
				row.Title = protocol.Headline(domain.RequestOf(s.FirstWords), summaryShown)
			}
		}
		r.Rows = append(r.Rows, protocol.UsageRow{Key: row.Key, Title: row.Title, Usage: usageOf(row.Usage)})
	}
	return r, err
}
