package acp

import (
	"cmp"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// kimiCode is the name by which Kimi Code introduces itself. Its release 2.1 sends no input of a
// tool call until the tool runs: it shows the model's arguments as text. A permission request
// names the tool in its title.
const kimiCode = "Kimi Code CLI"

// takeArguments uses the arguments that Kimi Code shows as the input of the tool call. Arguments
// arrive in growing pieces. Only a whole JSON object is an input.
func (u *toolUpdate) takeArguments() {
	if u.RawInput != nil || u.hasStarted() || u.text == "" {
		return
	}
	if _, err := toolinput.Members([]byte(u.text)); err == nil {
		u.RawInput, u.text = json.RawMessage(u.text), ""
	}
}

// nameByTitle takes the tool's name from the title of a permission request of Kimi Code.
func (p *permissionRequest) nameByTitle() { p.Name = cmp.Or(p.Name, p.Title) }
