package config

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// This file writes what the table of keys says as a configuration file.

const defaultsIntroduction = `# Configuration of duet-rpc.
#
# The same keys are valid in two files: yours, $XDG_CONFIG_HOME/duet/config.toml
# (~/.config/duet/config.toml), and a project's, .duet.toml in its root. Environment
# variables override the project's file, which overrides yours, which overrides the
# defaults. A key without a stated default has the value that its line shows.
#
# Of a project's file, what needs your trust has no effect until you review the file
# with "duet-rpc trust".
#
# Your file may have 1 MiB, 50,000 keys and tables, 1,000 agents and 10,000 rules; a
# project's 256 KiB, 5,000, 100 and 1,000.
`

// Defaults returns a configuration file that describes every key and sets none. A line that
// begins with "# " is prose; one that begins with "#" alone is TOML to be uncommented.
func Defaults() string {
	var b strings.Builder
	b.WriteString(defaultsIntroduction)
	writeKeys(&b, keys(), unconfigured(os.Getenv), 0)
	writeTables(&b, keys(), unconfigured(os.Getenv), "")
	return b.String()
}

// Variables returns the environment variables that set keys.
func Variables() []string { return variables(keys()) }

func variables(of *schema) (names []string) {
	for _, r := range of.rows {
		if r.env != "" {
			names = append(names, r.env)
		}
		if r.kind.form == section {
			names = append(names, variables(r.kind.schema)...)
		}
	}
	return names
}

// isInline reports whether a row is written as key = value.
func (r *row) isInline() bool { return r.kind.form == single || len(r.example) > 0 }

// writeKeys writes the keys of a table. number counts the tables of an example from 0.
func writeKeys(b *strings.Builder, of *schema, record any, number int) {
	for i := range of.rows {
		r := &of.rows[i]
		if !r.isInline() {
			continue
		}
		line := r.standard(record)
		if len(r.example) > 0 {
			line = r.example[number]
		}
		if line == "" {
			continue
		}
		if first := slices.IndexFunc(r.example, func(s string) bool { return s != "" }); number == max(first, 0) {
			if of == keys() {
				b.WriteByte('\n')
			}
			writeProse(b, r.description(record, line))
			if r.kind.schema != nil {
				for j := range r.kind.schema.rows {
					inner := &r.kind.schema.rows[j]
					writeProse(b, fmt.Sprintf("- %s: %s", inner.key, inner.description(r.kind.schema.of(record), "")))
				}
			}
		}
		fmt.Fprintf(b, "#%s = %s\n", r.key, line)
	}
}

// writeTables writes the tables of a table.
func writeTables(b *strings.Builder, of *schema, record any, title string) {
	for i := range of.rows {
		r := &of.rows[i]
		if r.isInline() {
			continue
		}
		inner, record, title := r.kind.schema, r.kind.schema.of(record), title+r.key
		if r.doc != "" {
			b.WriteByte('\n')
			writeProse(b, r.description(nil, ""))
		}
		headers := []string{"[" + title + "]"}
		switch r.kind.form {
		case entries, dictionary:
			headers = nil
			for _, name := range inner.names {
				headers = append(headers, "["+title+"."+name+"]")
			}
			title += "." + inner.names[0]
		case list:
			headers = slices.Repeat([]string{"[[" + title + "]]"}, len(inner.rows[0].example))
		}
		for number, header := range headers {
			if slices.ContainsFunc(inner.rows, func(r row) bool { return r.isInline() }) {
				fmt.Fprintf(b, "#%s\n", header)
			}
			writeKeys(b, inner, record, number)
		}
		writeTables(b, inner, record, title+".")
	}
}

// of returns a record of a table with its defaults: one of its own, or the one around it.
func (s *schema) of(outer any) any {
	if s.record == nil {
		return outer
	}
	return s.record()
}

// standard returns the default of a key as TOML; "" if it has none.
func (r *row) standard(record any) string {
	if r.unset != "" || r.kind.schema != nil {
		return r.unset
	}
	if v, ok := r.value(record); ok && (r.kind.what != flag().what || r.required == "") {
		return ValueText(r.shown(v, true))
	}
	return ""
}

// description describes a key for the comment above line.
func (r *row) description(record any, line string) string {
	var facts []string
	if r.kind.bounded && !mentions(r.doc, r.kind.what) {
		what, _, _ := strings.Cut(r.kind.what, ", such as")
		facts = append(facts, strings.ToUpper(what[:1])+what[1:]+".")
	}
	if standard := r.standard(record); standard != "" && standard != line {
		facts = append(facts, "Default: "+standard+".")
	}
	return r.sentences(facts...)
}

// sentences returns what the key does, further facts, and who may set it.
func (r *row) sentences(facts ...string) string {
	doc := r.doc
	if r.driver != "" {
		doc = fmt.Sprintf("Driver %q: %s%s", r.driver, strings.ToLower(doc[:1]), doc[1:])
	}
	facts = append([]string{doc}, facts...)
	if r.env != "" {
		facts = append(facts, "Variable: "+r.env+".")
	}
	switch {
	case r.own != "":
		facts = append(facts, "Only in your own file.")
	case r.trust != nil:
		facts = append(facts, r.trust.words)
	}
	return strings.Join(facts, " ")
}

// mentions reports whether a text has every quoted word of another, and there is one.
func mentions(text, words string) bool {
	quoted := strings.Split(words, `"`)
	for i := 1; i < len(quoted); i += 2 {
		if !strings.Contains(text, `"`+quoted[i]+`"`) {
			return false
		}
	}
	return len(quoted) > 1
}

// writeProse writes a text as comment lines.
func writeProse(b *strings.Builder, text string) {
	const width = 88
	line := "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	if line != "#" {
		b.WriteString(line + "\n")
	}
}
