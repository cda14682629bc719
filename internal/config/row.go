package config

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// This file works on rows of the table of keys (table.go): it reads a file by them, merges values,
// decides which of them need trust, and lists them.

// A row describes one key.
type row struct {
	key      string
	kind     kind
	to       func(record any) reflect.Value // the field with the value
	doc      string                         // what the key does, in sentences
	example  []string                       // TOML for `config --defaults`, one for each table of an example; absent: the default
	unset    string                         // what applies while it is not set, in words, if the field does not say
	required string                         // what the key is, if its table must have it
	env      string                         // the environment variable that sets it
	driver   string                         // the driver of the agents that have it; empty: any
	own      string                         // what it decides, if only the user's own file may have it
	trust    *trust                         // whether a project's file needs trust for it; nil: as its table
	current  func(c *Config) any            // the value in effect while the field is not set
}

// A schema describes a table of a file: its keys, and for a table that is a record of its own, the
// record.
type schema struct {
	rows []row

	record func() any                               // a pointer to a record with its defaults
	id     func(record any) string                  // identifies a record among those of its list
	unique string                                   // what the id must be, as in "expected …"
	check  func(t Table, record any, source string) // records impossible combinations of keys
	show   func(record any, secrets bool) any       // the record in one line; nil: its keys one by one
	source func(record any) string                  // the file that defines the record
	most   map[string]int                           // how many tables a file may have, by source
	names  []string                                 // of the tables of the example
}

// at returns the field that a function points to.
func at[S, T any](field func(*S) *T) func(any) reflect.Value {
	return func(record any) reflect.Value { return reflect.ValueOf(field(record.(*S))).Elem() }
}

// trust says whether a value in a project's file needs the user's trust.
type trust struct {
	words string // for the documentation
	needs func(r *row, below *Config, value any) bool
}

var (
	always = &trust{"In a project's file it waits for your trust.", func(*row, *Config, any) bool { return true }}
	// toRaise lets a project lower a limit, and set a missing one.
	toRaise = &trust{"In a project's file a higher value waits for your trust.", func(r *row, below *Config, value any) bool {
		limit, ok := r.value(below)
		return ok && higher(reflect.ValueOf(value), reflect.ValueOf(limit))
	}}
)

// higher reports whether a number is higher than another of its type.
func higher(a, b reflect.Value) bool {
	if a.CanFloat() {
		return a.Float() > b.Float()
	}
	return a.Int() > b.Int()
}

// value returns the value of a record, without pointer, and whether there is one.
func (r *row) value(record any) (v any, ok bool) {
	field := r.to(record)
	if field.IsZero() && r.current != nil {
		return r.current(record.(*Config)), true
	}
	if field.Kind() == reflect.Pointer {
		if field.IsNil() {
			return nil, false
		}
		return field.Elem().Interface(), true
	}
	return field.Interface(), !field.IsZero() || field.Kind() == reflect.Bool
}

// set sets the value of a record, and adds a record to its list.
func (r *row) set(record, value any) {
	field, v := r.to(record), reflect.ValueOf(value)
	switch {
	case r.kind.form == list:
		field.Set(reflect.Append(field, v.Elem()))
	case field.Kind() == reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
		field.Elem().Set(v)
	default:
		field.Set(v)
	}
}

// over merges settings of one row over the value of a record. Tables of variables and lists with
// [kind.adding] are added to. So are lists of tables: those of above come first, and replace those
// of the same id. Other values are replaced.
func (r *row) over(record any, above []setting) {
	field, v := r.to(record), reflect.ValueOf(above[0].value)
	switch {
	case r.kind.form == list:
		merged, ids, of := reflect.MakeSlice(field.Type(), 0, field.Len()+len(above)), map[string]bool{}, r.kind.schema
		for _, s := range above {
			ids[of.idOf(s.value)] = true
			merged = reflect.Append(merged, reflect.ValueOf(s.value).Elem())
		}
		for i := range field.Len() {
			if id := of.idOf(field.Index(i).Addr().Interface()); id == "" || !ids[id] {
				merged = reflect.Append(merged, field.Index(i))
			}
		}
		field.Set(merged)
	case field.Kind() == reflect.Map:
		merged := reflect.MakeMap(field.Type())
		for _, key := range field.MapKeys() {
			merged.SetMapIndex(key, field.MapIndex(key))
		}
		if r.kind.form == dictionary {
			merged.SetMapIndex(reflect.ValueOf(above[0].name), v.Elem())
		} else {
			for _, key := range v.MapKeys() {
				merged.SetMapIndex(key, v.MapIndex(key))
			}
		}
		field.Set(merged)
	case r.kind.adds:
		field.Set(reflect.ValueOf(union(field.Interface().([]string), v.Interface().([]string))))
	case r.kind.merge != nil:
		field.SetString(r.kind.merge(field.String(), v.String()))
	default:
		r.set(record, above[0].value)
	}
}

// union returns a list with the missing elements of another added.
func union(list, more []string) []string {
	has := make(map[string]bool, len(list)+len(more))
	out := make([]string, 0, len(list)+len(more))
	for _, s := range slices.Concat(list, more) {
		if !has[s] {
			has[s], out = true, append(out, s)
		}
	}
	return out
}

// idOf returns the id of a record; "" if it has none.
func (of *schema) idOf(record any) string {
	if of.id == nil {
		return ""
	}
	return of.id(record)
}

// A setting is a value of a file or of the environment.
type setting struct {
	row   *row
	trust *trust
	key   string // such as limits.max_turns
	agent string // the NAME of [agents.NAME]
	name  string // the NAME of [keys.NAME], of an MCP server and the like
	value any    // a pointer to a record; nil: an empty table [agents.NAME]
}

// read reads a table and hands each of its values to put. in has what the values have in common.
func (l *layer) read(t Table, of *schema, in setting, record any, put func(setting)) {
	known := make([]string, len(of.rows))
	for i, r := range of.rows {
		known[i] = r.key
	}
	t.Only(known)
	for i := range of.rows {
		r := &of.rows[i]
		s := setting{row: r, trust: cmp.Or(r.trust, in.trust), key: in.key + r.key, agent: in.agent}
		switch {
		case !t.Has(r.key):
			if r.required != "" {
				t.Missing(r.key, r.required)
			}
		case r.own != "" && l.source == SourceProject:
			title := r.key
			if r.kind.form != single {
				title = "[" + title + "]"
			}
			l.Wrong(l.KeyAt(t.below(r.key)), "%s decides %s, so it belongs only in your own configuration", title, r.own)
		case r.kind.form == single:
			if s.value = r.kind.read(t, r.key); s.value != nil {
				put(s)
			}
		case r.kind.form == section:
			if sub, ok := t.Sub(r.key); ok {
				s.key += "."
				l.read(sub, r.kind.schema, s, record, put)
			}
		case r.kind.form == list:
			l.readList(t, s, put)
		default:
			l.readNamed(t, s, put)
		}
	}
	if of.check != nil {
		of.check(t, record, l.source)
	}
}

// readRecord reads a table that is a record.
func (l *layer) readRecord(t Table, of *schema) any {
	record := of.record()
	l.read(t, of, setting{}, record, func(s setting) { s.row.set(record, s.value) })
	return record
}

// readList reads [[key]].
func (l *layer) readList(t Table, s setting, put func(setting)) {
	of, seen := s.row.kind.schema, map[string]bool{}
	for _, sub := range t.List(s.row.key, of.most[l.source]) {
		s.value = l.readRecord(sub, of)
		s.name = of.idOf(s.value)
		if seen[s.name] {
			sub.Wrong(of.rows[0].key, of.unique, quoteShort(s.name))
		}
		seen[s.name] = s.name != ""
		put(s)
	}
}

// readNamed reads [key.NAME].
func (l *layer) readNamed(t Table, s setting, put func(setting)) {
	of := s.row.kind.schema
	names, subs := t.Tables(s.row.key, of.most[l.source])
	for _, name := range names {
		sub, s := subs[name], s
		s.name = name
		if s.row.kind.form == dictionary {
			s.value = l.readRecord(sub, of)
			put(s)
			continue
		}
		if name == demoAgent {
			l.Wrong(sub.At(), "%s is the built-in demonstration agent and cannot be changed: choose another name", demoAgent)
			continue
		}
		l.agents[name] = sub
		s.agent = name
		if len(sub.Values) == 0 {
			put(s)
		}
		s.key += "." + name + "."
		l.read(sub, of, s, nil, put)
	}
}

// needsTrust reports whether a setting of a project's file needs the user's trust.
func (s setting) needsTrust(below *Config) bool {
	return s.trust != nil && s.trust.needs(s.row, below, s.value)
}

// full returns the key with the name of the record.
func (s setting) full() string {
	if s.name == "" || s.row.kind.form == single {
		return s.key
	}
	return s.key + "." + s.name
}

// values describes a setting. It shows values that may be secret only if secrets is set.
func (s setting) values(source string, secrets bool) (out []Value) {
	if s.value == nil {
		return []Value{{Key: s.full(), Value: map[string]string{}, Source: source}}
	}
	if s.row.kind.form == single {
		return []Value{{Key: s.key, Value: s.row.shown(s.value, secrets), Source: source}}
	}
	of := s.row.kind.schema
	if of.show != nil {
		return []Value{{Key: s.full(), Value: of.show(s.value, secrets), Source: source}}
	}
	for i := range of.rows {
		if v, ok := of.rows[i].value(s.value); ok {
			out = append(out, Value{Key: s.full() + "." + of.rows[i].key, Value: of.rows[i].shown(v, secrets), Source: source})
		}
	}
	return out
}

// shown returns a value as `duet-rpc config` shows it.
func (r *row) shown(v any, secrets bool) any {
	switch v := v.(type) {
	case time.Duration:
		return shortDuration(v)
	case map[string]string:
		if r.kind.secret && !secrets {
			return hidden(v)
		}
	}
	return v
}

// needTrust lists the settings of a project's file that wait for the user's trust.
func (l *layer) needTrust(below *Config, secrets bool) (out []Value) {
	for _, s := range l.settings {
		if s.needsTrust(below) {
			out = append(out, s.values(l.source, secrets)...)
		}
	}
	return out
}

// apply merges a layer over the configuration. Of an untrusted layer only those settings apply that
// need no trust. Its agents are kept to be displayed, and refused. Its changes to existing agents
// are dropped, so that it cannot disable an agent of its user.
func (c *Config) apply(l *layer, trusted bool) {
	below := *c
	below.Agents = maps.Clone(c.Agents)
	apply := l.settings
	if !trusted {
		c.Untrusted = append(c.Untrusted, l.Path)
		apply = nil
		for _, s := range l.settings {
			_, known := below.Agents[s.agent]
			if !s.needsTrust(&below) || s.agent != "" && !known {
				apply = append(apply, s)
				continue
			}
			c.wait(s, l.source)
		}
	}
	for n := 0; len(apply) > 0; apply = apply[n:] {
		n = 1
		for s := apply[0]; s.row.kind.form == list && n < len(apply) && apply[n].row == s.row && apply[n].agent == s.agent; {
			n++
		}
		c.merge(apply[:n], l.source, trusted)
	}
}

// wait notes a setting that waits for trust.
func (c *Config) wait(s setting, source string) {
	for _, v := range s.values(source, false) {
		v.Waits = true
		c.waiting = append(c.waiting, v)
	}
	if s.row.key == "gates" {
		c.WaitingGates = append(c.WaitingGates, s.name)
	}
	c.WorktreesWait = c.WorktreesWait || strings.HasPrefix(s.key, "worktree")
}

// merge merges settings of one row.
func (c *Config) merge(settings []setting, source string, trusted bool) {
	for _, s := range settings {
		c.origins[s.full()] = source
	}
	s := settings[0]
	if s.agent == "" {
		s.row.over(c, settings)
		return
	}
	a, known := c.Agents[s.agent]
	if !known {
		a = newAgent(s.agent)
	}
	a.Source, a.Trusted, a.FromProject = source, a.Trusted && trusted, a.FromProject || source == SourceProject
	if s.value != nil {
		s.row.over(&a, settings)
	}
	c.Agents[s.agent] = a
}

// Values lists every effective setting, and those that wait for trust, with its source. It hides
// the values of env and of headers.
func (c *Config) Values() []Value {
	return append(c.values(keys(), c, setting{}, SourceDefault), c.waiting...)
}

// values lists the values of a record. source is that of values that no file sets.
func (c *Config) values(of *schema, record any, in setting, source string) (out []Value) {
	for i := range of.rows {
		r := &of.rows[i]
		s := setting{row: r, key: in.key + r.key, agent: in.agent}
		switch r.kind.form {
		case section:
			s.key += "."
			out = append(out, c.values(r.kind.schema, record, s, source)...)
		case entries:
			for _, a := range c.List() {
				for _, v := range c.values(r.kind.schema, &a, setting{key: s.key + "." + a.Name + ".", agent: a.Name}, a.Source) {
					v.Waits = !a.Trusted
					out = append(out, v)
				}
			}
		case list:
			field := r.to(record)
			for i := range field.Len() {
				s.value = field.Index(i).Addr().Interface()
				s.name = r.kind.schema.idOf(s.value)
				out = append(out, s.values(c.sourceOf(s), false)...)
			}
		case dictionary:
			field := r.to(record)
			for _, name := range slices.SortedFunc(slices.Values(field.MapKeys()), byText) {
				element := reflect.New(field.Type().Elem())
				element.Elem().Set(field.MapIndex(name))
				s.name = name.String()
				s.value = element.Interface()
				out = append(out, s.values(c.sourceOf(s), false)...)
			}
		default:
			v, ok := r.value(record)
			if a, is := record.(*Agent); is && r.driver != "" && r.driver != a.Driver || !ok && c.origins[s.key] == "" {
				continue
			}
			out = append(out, Value{Key: s.key, Value: r.shown(v, false), Source: cmp.Or(c.origins[s.key], source)})
		}
	}
	return out
}

func byText(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) }

// sourceOf returns the source of a record.
func (c *Config) sourceOf(s setting) string {
	if of := s.row.kind.schema; of.source != nil {
		return of.source(s.value)
	}
	return c.origins[s.full()]
}
