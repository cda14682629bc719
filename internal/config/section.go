package config

import (
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config/triggerconfig"
)

// A section is a table as the packages below this one read it: each of them knows the
// keys of its own part of a file. See [triggerconfig.Table].
type section struct{ table }

func (s section) Only(known ...string) { s.only(known) }

func (s section) Has(key string) bool {
	_, has := s.values[key]
	return has
}

func (s section) Text(key string, check func(string) error) string {
	if text := s.checked(key, check); text != nil {
		return *text
	}
	return ""
}

func (s section) Texts(key string, check func(string) error) []string { return s.texts(key, check) }
func (s section) Flag(key string) *bool                               { return s.flag(key) }
func (s section) Whole(key string, least, most int) *int              { return s.whole(key, least, most) }
func (s section) Value(key string) any                                { return s.values[key] }
func (s section) Wrong(key, expected, found string)                   { s.wrong(key, expected, found) }
func (s section) Missing(key, what string)                            { s.missing(key, what) }
func (s section) Name(name string) error                              { return checkName(name) }
func (s section) Place() (file string, line int)                      { return s.doc.name, s.doc.keyAt(s.path).line }

func (s section) Duration(key string, least, most time.Duration) *time.Duration {
	return s.duration(key, least, most)
}

func (s section) Tables(key string, most int) (list []triggerconfig.Table) {
	for _, t := range s.list(key, key, most) {
		list = append(list, section{t})
	}
	return list
}

func (s section) Table(key string) (triggerconfig.Table, bool) {
	v, has := s.values[key]
	values, ok := v.(map[string]any)
	if !ok {
		if has {
			s.wrong(key, "a table, "+key+" = { … }", kind(v))
		}
		return nil, false
	}
	return section{s.sub(key, values, " in "+key+s.place)}, true
}

// mostTriggers is how many a file may have.
const mostTriggers = 100

// decodeTriggers reads [[triggers]] and [automation].
func (l *layer) decodeTriggers(top table) {
	known := map[string]bool{}
	for _, t := range top.list("triggers", "triggers", mostTriggers) {
		trigger := triggerconfig.Decode(section{t}, l.source == SourceProject)
		if known[trigger.ID] {
			t.wrong("id", "an id that no other trigger of the file has", quoteShort(trigger.ID))
		}
		known[trigger.ID] = trigger.ID != ""
		l.triggers = append(l.triggers, trigger)
	}
	if t, ok := (section{top}).Table("automation"); ok {
		if l.source == SourceProject {
			l.wrong(l.keyAt([]string{"automation"}), "[automation] says where events may be sent, so it stands in your own configuration alone")
			return
		}
		a := triggerconfig.DefaultAutomation()
		triggerconfig.DecodeAutomation(t, &a)
		l.automation = &a
	}
}

// applyTriggers adds the triggers of a layer that is trusted. One with the id of another
// takes its place.
func (b *builder) applyTriggers(l *layer) {
	for _, trigger := range l.triggers {
		for i, below := range b.c.Triggers {
			if below.ID == trigger.ID {
				b.c.Triggers = append(b.c.Triggers[:i], b.c.Triggers[i+1:]...)
				break
			}
		}
		b.c.Triggers = append(b.c.Triggers, trigger)
	}
	if l.automation != nil {
		b.c.Automation = *l.automation
		b.c.origins["automation"] = l.source
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
