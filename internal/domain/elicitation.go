package domain

import "encoding/json"

// An Elicitation is what an agent asks a person to fill in or to open, in the words
// of the Agent Client Protocol. The zero value is none.
type Elicitation struct {
	Mode   string          // one of the constants; "" is none
	Schema json.RawMessage // of a form: what is asked for, the agent's own JSON
	URL    string          // what is to be opened
	ID     string          // the agent's own id of what is to be opened
}

// Values of Elicitation.Mode.
const (
	ElicitForm = "form"
	ElicitURL  = "url"
)
