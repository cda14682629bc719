package acp

import (
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/acp/setting"
)

// reportSettings tells the hub all that the agent has told of its session: what
// came between two prompts nobody was told. The mode is told at each prompt.
func (a *agent) reportSettings(t *turn) {
	a.settings.Report(func(now catalog.Session) {
		t.Event(catalog.EventSession, now)
		if m := now.Mode; m != nil && m.Current != "" {
			t.Event(catalog.EventMode, catalog.Mode{Current: m.Current, Available: setting.IDs(m.Choices), Choices: m.Choices})
		}
	})
}

// reportChanged tells the hub what the agent has told since, and its mode if that
// is another one.
func (a *agent) reportChanged(t *turn) {
	a.settings.ReportChanged(func(changed catalog.Session) {
		t.Event(catalog.EventSession, changed)
		if m := changed.Mode; m != nil && m.Current != "" {
			t.Event(catalog.EventMode, catalog.Mode{Current: m.Current})
		}
	})
}
