package rowjson

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// An Elicitation is what an agent asks a person to fill in or to open.
type Elicitation struct {
	Mode   string          `json:"mode,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
	URL    string          `json:"url,omitempty"`
	ID     string          `json:"id,omitempty"`
}

// ElicitationOf is an elicitation as rows have it, nil of none.
func ElicitationOf(e domain.Elicitation) *Elicitation {
	if e.Mode == "" {
		return nil
	}
	row := Elicitation(e)
	return &row
}

// Value is an elicitation as the program has it; nil is none.
func (row *Elicitation) Value() domain.Elicitation {
	if row == nil {
		return domain.Elicitation{}
	}
	return domain.Elicitation(*row)
}
