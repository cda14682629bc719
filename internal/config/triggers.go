package config

import (
	"github.com/duet-rpc/duet-rpc/internal/config/document"
	"github.com/duet-rpc/duet-rpc/internal/config/triggerconfig"
)

// mostTriggers is how many a file may have.
const mostTriggers = 100

// decodeTriggers reads [[triggers]] and [automation].
func (l *layer) decodeTriggers(top document.Table) {
	known := map[string]bool{}
	for _, t := range top.List("triggers", "triggers", mostTriggers) {
		trigger := triggerconfig.Decode(t, l.source == SourceProject)
		if known[trigger.ID] {
			t.Wrong("id", "an id that no other trigger of the file has", document.QuoteShort(trigger.ID))
		}
		known[trigger.ID] = trigger.ID != ""
		l.triggers = append(l.triggers, trigger)
	}
	t, ok := top.Sub("automation")
	switch {
	case !ok:
	case l.source == SourceProject:
		t.WrongHere("[automation] says where events may be sent, so it stands in your own configuration alone")
	default:
		a := triggerconfig.DecodeAutomation(t)
		l.automation = &a
	}
}

// triggerValues are the triggers, and what holds for all of them, as settings.
func (c *Config) triggerValues() (out []Value) {
	if source := c.origins["automation"]; source != "" {
		out = append(out, Value{Key: "automation.webhook_hosts", Value: c.Automation.WebhookHosts, Source: source},
			Value{Key: "automation.max_depth", Value: c.Automation.MaxDepth, Source: source}, Value{Key: "automation.max_per_hour", Value: c.Automation.MaxPerHour, Source: source})
	}
	for _, t := range c.Triggers {
		source := SourceUser
		if t.FromProject {
			source = SourceProject
		}
		out = append(out, Value{Key: "triggers", Value: phrase(quoteControls(t.String())), Source: source})
	}
	return out
}
