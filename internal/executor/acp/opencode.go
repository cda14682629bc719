package acp

import (
	"encoding/json"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// isTodos reports whether an update begins a call of opencode's todowrite tool. Later titles of the
// call count what is done.
func isTodos(u *toolUpdate) bool { return strings.EqualFold(u.Title, "todowrite") }

// todos returns the plan in the input of opencode's todowrite tool, or nil. opencode reports its
// plan in no other way.
func todos(input json.RawMessage) *catalog.Plan {
	var list struct {
		Todos []domain.PlanEntry `json:"todos"`
	}
	if json.Unmarshal(input, &list) != nil || list.Todos == nil {
		return nil
	}
	return &catalog.Plan{Entries: list.Todos}
}
