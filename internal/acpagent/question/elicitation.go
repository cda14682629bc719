package question

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// answerField is the one field of the form for a question that wants words.
const answerField = "answer"

var wordsSchema = json.RawMessage(`{"type":"object","properties":{"` + answerField + `":{"type":"string","title":"Your answer","minLength":1}},"required":["` + answerField + `"]}`)

// elicit has the user fill in a form, open an address, or answer in words.
func (a Asker) elicit(ctx context.Context, session string, q wire.Approval) (*wire.Decision, error) {
	r := schema.ElicitationRequest{SessionID: session, Mode: wire.ModeForm, Message: cmp.Or(q.Title, q.Subject, "The agent asks."), Schema: q.Schema}
	inWords := q.Mode == ""
	switch {
	case inWords:
		r.Schema = wordsSchema
	case q.Mode == wire.ModeURL:
		r.Mode, r.URL, r.ID = wire.ModeURL, q.URL, q.ID
		if len(q.URLWarnings) > 0 {
			r.Message += "\n" + strings.Join(q.URLWarnings, "\n")
		}
	}
	var answer schema.ElicitationResponse
	if err := a.Client.Call(ctx, schema.ElicitationCreate, r, &answer); err != nil {
		return nil, err
	}
	d := &wire.Decision{ID: q.ID}
	switch answer.Action {
	case "accept":
		d.Decision, d.Comment = wire.Respond, "agreed"
		if inWords {
			var words struct {
				Answer string `json:"answer"`
			}
			_ = json.Unmarshal(answer.Content, &words) // what cannot be read of it was not said
			if d.Comment = words.Answer; d.Comment == "" {
				return nil, nil
			}
		} else if q.Mode == wire.ModeForm {
			d.Content = answer.Content
		}
	case "decline":
		d.Decision, d.Comment = wire.Deny, "declined"
	case "cancel":
		if inWords {
			return nil, nil
		}
		d.Decision = wire.Cancel
	default:
		return nil, nil
	}
	return d, nil
}
