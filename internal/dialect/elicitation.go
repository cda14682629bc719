package dialect

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/form"
)

// An Elicitation is what a person is asked to fill in or to open, as a part of
// the question.
type Elicitation struct {
	Mode        string          `json:"mode" doc:"form or url: of a question that asks a person to fill in a form or to open an address. It is answered with respond, deny (declined) or cancel."`
	Schema      json.RawMessage `json:"schema,omitempty" doc:"Of a form: a flat object of JSON Schema, as of ACP's elicitation. The answer's content has to fit it."`
	URL         string          `json:"url,omitempty" doc:"The address to open. It is opened by nobody unless a person says so; responding says that a person agrees to open it."`
	URLHost     string          `json:"url_host,omitempty" doc:"The host that url leads to: show it beside."`
	URLWarnings []string        `json:"url_warnings,omitempty" doc:"What to look at before url is opened, in words for people; show them."`
}

// ElicitationOf is nil for none.
func ElicitationOf(e domain.Elicitation) *Elicitation {
	if e.Mode == "" {
		return nil
	}
	r := &Elicitation{Mode: e.Mode, Schema: e.Schema, URL: e.URL}
	if e.Mode == domain.ElicitURL {
		link := form.LinkOf(e.URL)
		r.URLHost, r.URLWarnings = link.Host, link.Warnings
	}
	return r
}
