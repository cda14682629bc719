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

func budgetOf(b protocol.RunBudget) domain.Budget {
	return domain.Budget{
		Turns: int(b.Turns), Time: milliseconds(b.TimeMS), Tokens: int64(b.Tokens), CostUSD: max(b.CostUSD, 0), Repeats: int(b.Repeats),
	}
}

func usageOf(u domain.Usage) protocol.Usage {
	return protocol.Usage{Runs: u.Runs, InputTokens: u.Tokens.Input, OutputTokens: u.Tokens.Output, CacheReadTokens: u.Tokens.CacheRead, CacheWriteTokens: u.Tokens.CacheWrite, CostUSD: u.Tokens.CostUSD, TimeMS: u.Time.Milliseconds()}
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
	return time.Time{}, server.InvalidParam(server.ParamError{Param: param, Expected: "a time such as 2026-01-31T12:00:00Z, or a date such as 2026-01-31", Received: "another text"})
}

func checkUsage(p protocol.UsageParams) error {
	_, err := timeOrNone("since", p.Since)
	_, errUntil := timeOrNone("until", p.Until)
	switch domain.UsageBy(p.By) {
	case "", domain.UsageByDay, domain.UsageByAgent, domain.UsageByThread, domain.UsageByModel:
		return cmp.Or(err, errUntil)
	}
	return server.InvalidParam(server.ParamError{Param: "by", Expected: "what to tell it by", Received: "another text", Accepted: []string{"day", "agent", "session", "model"}})
}

func (t *tasks) usage(ctx context.Context, h *hub.Hub, p protocol.UsageParams) (r protocol.UsageResult, err error) {
	var f domain.UsageFilter
	f.Since, _ = timeOrNone("since", p.Since) // they were checked
	f.Til, _ = timeOrNone("until", p.Until)
	if p.SessionID != "" {
		s, err := h.Query().Session(ctx, p.SessionID)
		if err != nil {
			return r, err
		}
		f.Thread = s.Thread.ID
	}
	total, rows, err := h.Query().Usage(ctx, f, domain.UsageBy(p.By), t.Now())
	r.Total = usageOf(total)
	for _, row := range rows {
		r.Rows = append(r.Rows, protocol.UsageRow{Key: row.Key, Title: row.Title, Usage: usageOf(row.Usage)})
	}
	return r, err
}
