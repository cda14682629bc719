// Package rowjson spells values of package domain in the JSON that columns and
// the log's entries hold. Programs to come read what this one writes, and this
// one what those before it wrote, so names of members do not change, whatever
// clients are told (package dialect). It knows no database.
package rowjson

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/jsonwalk"
)

// Options are answers that were offered. Clients offer some, too: of a list that
// cannot be read, what can be is.
type Options []domain.Option

type option struct {
	ID   string            `json:"option_id,omitempty"`
	Name string            `json:"name,omitempty"`
	Kind domain.OptionKind `json:"kind,omitempty"`
}

// MarshalJSON never fails for options that were read from JSON.
func (list Options) MarshalJSON() ([]byte, error) {
	rows := []byte{'['}
	for i, o := range list {
		row, err := jsonwalk.OpenjsonWrite(option{o.ID, o.Name, o.Kind}, o.Extra)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			rows = append(rows, ',')
		}
		rows = append(rows, row...)
	}
	return append(rows, ']'), nil
}

// UnmarshalJSON never fails.
func (list *Options) UnmarshalJSON(data []byte) error {
	var rows []json.RawMessage
	if json.Unmarshal(data, &rows) != nil || rows == nil {
		return nil
	}
	*list = make(Options, len(rows))
	for i, row := range rows {
		var o option
		extra, _ := jsonwalk.OpenjsonRead(row, &o)
		(*list)[i] = domain.Option{ID: o.ID, Name: o.Name, Kind: o.Kind, Extra: extra}
	}
	return nil
}

// A Diff is the change of a file.
type Diff struct {
	Path    string  `json:"path"`
	OldText *string `json:"old_text,omitempty"`
	NewText string  `json:"new_text"`
}

// DiffsOf are diffs as rows have them, nil of nil.
func DiffsOf(diffs []domain.Diff) []Diff {
	return converted(diffs, func(d domain.Diff) Diff { return Diff(d) })
}

// Diffs are diffs as the program has them, nil of nil.
func Diffs(rows []Diff) []domain.Diff {
	return converted(rows, func(d Diff) domain.Diff { return domain.Diff(d) })
}

// ToolDetails are what a tool call touches.
type ToolDetails struct {
	Paths    []string `json:"paths,omitempty"`
	Diffs    []Diff   `json:"diffs,omitempty"`
	Terminal string   `json:"terminal,omitempty"`

	RefusedBy string  `json:"refused_by,omitempty"`
	Refusal   string  `json:"refusal,omitempty"`
	Blocks    []Block `json:"blocks,omitempty"`

	Meta json.RawMessage `json:"_meta,omitempty"`
}

// ToolDetailsOf are a tool call's details as rows have them.
func ToolDetailsOf(d domain.ToolDetails) ToolDetails {
	return ToolDetails{d.Paths, DiffsOf(d.Diffs), d.Terminal, d.RefusedBy, d.Refusal, BlocksOf(d.Blocks), d.Meta}
}

// Value is the details as the program has them.
func (d ToolDetails) Value() domain.ToolDetails {
	return domain.ToolDetails{Paths: d.Paths, Diffs: Diffs(d.Diffs), Terminal: d.Terminal, RefusedBy: d.RefusedBy, Refusal: d.Refusal, Blocks: Blocks(d.Blocks), Meta: d.Meta}
}

// RulePreview is what a rule would hold for.
type RulePreview struct {
	Tool    string `json:"tool"`
	Covers  string `json:"covers"`
	Pattern string `json:"pattern,omitempty"`
}

// Plan is an agent's plan.
type Plan struct {
	Entries []planEntry `json:"entries"`
}

type planEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority,omitempty"`
	Status   string `json:"status,omitempty"`
}

// PlanOf is a plan as rows have it.
func PlanOf(p domain.Plan) Plan {
	return Plan{converted(p.Entries, func(e domain.PlanEntry) planEntry { return planEntry(e) })}
}

// Value is the plan as the program has it.
func (p Plan) Value() domain.Plan {
	return domain.Plan{Entries: converted(p.Entries, func(e planEntry) domain.PlanEntry { return domain.PlanEntry(e) })}
}
