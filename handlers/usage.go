package handlers

import (
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/server"
)

// A runBudget is how much a run may use.
type runBudget struct {
	Turns   uint    `json:"turns,omitempty" doc:"Rounds of tool calls; 0: as configured."`
	TimeMS  uint    `json:"time_ms,omitempty" doc:"How long its agent may work, in milliseconds, without what it waits for people; 0: as configured."`
	Tokens  uint    `json:"tokens,omitempty" doc:"Tokens, read and written; 0: as configured."`
	CostUSD float64 `json:"cost_usd,omitempty" doc:"US dollars; 0: as configured."`
	Repeats uint    `json:"repeats,omitempty" doc:"The same tool call, one after the other; 0: as configured."`
}

func (b runBudget) value() domain.Budget {
	return domain.Budget{
		Turns: int(b.Turns), Time: milliseconds(b.TimeMS), Tokens: int64(b.Tokens), CostUSD: max(b.CostUSD, 0), Repeats: int(b.Repeats),
	}
}

type usageParams struct {
	By        string `json:"by,omitempty" doc:"day, agent, session (a conversation) or model: rows has one entry for each."`
	Since     string `json:"since,omitempty" doc:"Only what was asked for at this time or later: as RFC 3339 has it, or a date, which begins at midnight where the hub is."`
	Until     string `json:"until,omitempty" doc:"Only what was asked for before."`
	SessionID string `json:"session_id,omitempty" doc:"Only the conversation of this session; every id of one will do."`
}

type usage struct {
	Runs             int     `json:"runs"`
	InputTokens      int64   `json:"input_tokens"`
	OutputTokens     int64   `json:"output_tokens"`
	CacheReadTokens  int64   `json:"cache_read_tokens"`
	CacheWriteTokens int64   `json:"cache_write_tokens"`
	CostUSD          float64 `json:"cost_usd"`
	TimeMS           int64   `json:"time_ms" doc:"How long agents worked, without what they waited for people."`
}

type usageRow struct {
	Key   string `json:"key" doc:"The day, agent, conversation (its thread_id) or model; empty where it is not known."`
	Title string `json:"title,omitempty" doc:"Of a conversation."`
	usage
}

type usageResult struct {
	Total usage      `json:"total"`
	Rows  []usageRow `json:"rows,omitempty" doc:"With by: the last day first, or what cost most."`
}

func usageOf(u domain.Usage) usage {
	return usage{u.Runs, u.Tokens.Input, u.Tokens.Output, u.Tokens.CacheRead, u.Tokens.CacheWrite, u.Tokens.CostUSD, u.Time.Milliseconds()}
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

func (p usageParams) check() error {
	_, err := timeOrNone("since", p.Since)
	_, errUntil := timeOrNone("until", p.Until)
	switch domain.UsageBy(p.By) {
	case "", domain.UsageByDay, domain.UsageByAgent, domain.UsageByThread, domain.UsageByModel:
		return first(err, errUntil)
	}
	return server.InvalidParam(server.ParamError{Param: "by", Expected: "what to tell it by", Received: "another text", Accepted: []string{"day", "agent", "session", "model"}})
}

func (t *tasks) usage(ctx context.Context, h *hub.Hub, p usageParams) (r usageResult, err error) {
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
		r.Rows = append(r.Rows, usageRow{row.Key, row.Title, usageOf(row.Usage)})
	}
	return r, err
}
