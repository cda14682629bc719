package openrpc

import (
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/server"
	"github.com/duet-rpc/duet-rpc/server/schema"
)

// Markdown is the reference of a registry's methods, for docs/protocol.md.
func Markdown(reg *server.Registry) string {
	var b strings.Builder
	methods := reg.Methods()
	b.WriteString("| method | what it does |\n| --- | --- |\n")
	for _, m := range methods {
		first, _, _ := strings.Cut(m.Doc, ". ")
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", m.Name, anchor(m.Name), strings.TrimSuffix(first, "."))
	}
	for _, m := range methods {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n", m.Name, m.Doc)
		if m.LongRunning {
			b.WriteString("\nLong-running: it runs beside other requests, and `$/cancelRequest` cancels it.\n")
		}
		b.WriteString("\nParameters: ")
		writeMembers(&b, m.Params(), "none.\n")
		b.WriteString("\nResult: ")
		writeMembers(&b, m.Result(), "an object without members.\n")
	}
	return b.String()
}

// writeMembers lists an object's members, or names another type.
func writeMembers(b *strings.Builder, s *schema.Schema, ifNone string) {
	switch {
	case s.Type == "":
		b.WriteString("any value.\n")
	case s.Type != "object" || s.Values != nil || s.Nullable:
		fmt.Fprintf(b, "`%s`\n", s)
	case len(s.Properties) == 0:
		b.WriteString(ifNone)
	default:
		b.WriteString("an object.\n\n| member | type | |\n| --- | --- | --- |\n")
		writeRows(b, s, "")
	}
}

// writeRows writes a row for each member, and those of objects inside.
func writeRows(b *strings.Builder, s *schema.Schema, prefix string) {
	for _, p := range s.Properties {
		about := p.Schema.Description
		if !p.Required {
			about = strings.TrimSpace("Optional. " + about)
		}
		kind := p.Schema.String()
		if p.Schema.Properties != nil {
			kind = "object"
			if p.Schema.Nullable {
				kind += " or null"
			}
		}
		if p.Schema.Enum != nil {
			about = strings.TrimSpace(about + " One of " + strings.Join(p.Schema.Enum, ", ") + ".")
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %s |\n", prefix, p.Name, kind, about)
		writeRows(b, p.Schema, prefix+p.Name+".")
	}
}

// anchor is the fragment that a Markdown viewer gives to a heading.
func anchor(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, ".", ""))
}
