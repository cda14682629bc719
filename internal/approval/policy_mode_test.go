package approval

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func TestTheModeThatTheAgentIsInCounts(t *testing.T) {
	const def, edits, bypass, plan = catalog.ModeDefault, catalog.ModeAcceptEdits, catalog.ModeBypass, catalog.ModePlan
	claude, own := []string{def, edits, plan, bypass}, []string{"ask", "code"}
	edit := domain.Approval{Tool: "Edit", ToolKind: "edit", Input: []byte(`{"file_path":"/p/a"}`)}
	const asked, denied, allowed, all = "", "false mode=plan", "true mode=acceptEdits", "true mode=bypassPermissions"
	for _, c := range []struct {
		why       string
		asked, is string
		has       []string
		want      string
	}{
		{"it says nothing", plan, "", nil, denied},
		{"it is in it", plan, plan, claude, denied},
		{"it has left it", plan, def, claude, asked},
		{"it has left it for another in which it does not ask", plan, edits, claude, asked},
		{"it has left it, to run everything", plan, bypass, claude, asked},
		{"it went there by itself", def, plan, claude, denied},
		{"also from where everything is allowed", bypass, plan, claude, denied},
		{"people have said so", edits, edits, claude, allowed},
		{"it is no more in it", edits, def, claude, asked},
		{"it has not confirmed it", bypass, def, claude, asked},
		{"people have said so", bypass, bypass, claude, all},
		{"people have allowed more", bypass, edits, claude, allowed},
		{"nobody but the agent has said so", def, edits, claude, asked},
		{"nobody but the agent has said so", def, bypass, claude, asked},
		{"it is Duet's alone", edits, "ask", own, allowed},
		{"it is Duet's alone", bypass, "code", own, all},
		{"it is the agent's alone", "code", "code", own, asked},
		{"of an agent that has no such mode", plan, "ask", own, denied},
		{"an agent whose default is called default has no others of Duet's", edits, def, []string{def, "yolo"}, allowed},
	} {
		p := NewPolicy("/p", nil)
		r := p.Judge(callOf(edit), Situation{Thread: domain.Thread{CWD: "/p"}, Run: domain.Run{Mode: c.asked, AgentMode: c.is}, AgentModes: c.has})
		got := ""
		if r.IsSettled() {
			got = map[bool]string{true: "true ", false: "false "}[r.Approved] + r.Reason
		}
		assert.Equal(t, c.want, got, "%s: %s was asked for, it says %s", c.why, c.asked, c.is)
	}
}
