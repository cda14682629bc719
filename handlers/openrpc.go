package handlers

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/server"
	"github.com/duet-rpc/duet-rpc/server/schema"
)

// This file describes a registry's methods: as an OpenRPC 1.3 document
// for rpc.discover, and as the Markdown of docs/protocol.md.

// An OpenRPCDocument describes the methods (https://spec.open-rpc.org, version 1.3).
type OpenRPCDocument struct {
	OpenRPC string          `json:"openrpc"`
	Info    openRPCInfo     `json:"info"`
	Methods []openRPCMethod `json:"methods"`
}

// openRPCInfo names the service.
type openRPCInfo struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Version     string `json:"version"`
}

// A openRPCMethod is one method of the service.
type openRPCMethod struct {
	Name           string              `json:"name"`
	Summary        string              `json:"summary"`
	ParamStructure string              `json:"paramStructure"`
	Params         []contentDescriptor `json:"params"`
	Result         contentDescriptor   `json:"result"`
	// LongRunning is an extension: the method runs beside others and can be
	// cancelled with $/cancelRequest.
	LongRunning bool `json:"x-long-running,omitempty"`
}

// A contentDescriptor is a parameter or a result.
type contentDescriptor struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Required    bool           `json:"required,omitempty"`
	Schema      *schema.Schema `json:"schema"`
}

// Describe makes the document of a registry's methods.
func Describe(reg *server.Registry, version string) OpenRPCDocument {
	doc := OpenRPCDocument{
		OpenRPC: "1.3.2",
		Info: openRPCInfo{
			Title:       "duet-rpc",
			Description: "The process that an editor starts to work with coding agents.",
			Version:     version,
		},
		Methods: []openRPCMethod{},
	}
	for _, m := range reg.Methods() {
		d := openRPCMethod{
			Name: m.Name, Summary: m.Doc, ParamStructure: "by-name", LongRunning: m.LongRunning,
			Params: []contentDescriptor{},
			Result: contentDescriptor{Name: "result", Schema: m.Result()},
		}
		if m.Params().Type == "array" {
			d.ParamStructure = "by-position"
		}
		for _, p := range m.Params().Properties {
			schema := *p.Schema
			schema.Description = "" // it stands beside the schema
			d.Params = append(d.Params, contentDescriptor{p.Name, p.Schema.Description, p.Required, &schema})
		}
		doc.Methods = append(doc.Methods, d)
	}
	return doc
}

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

// TypeScript declares the parameters and results of a registry's methods, for
// the extension of VS Code. A method is a member of the interface Methods, under its
// name as it is on the wire: names that identifiers would make equal, such as
// cancel_task and cancelTask, stay apart.
func TypeScript(reg *server.Registry) string {
	var b strings.Builder
	b.WriteString("// Made by `make generate`. The methods of duet-rpc, as rpc.discover describes them.\n\n")
	b.WriteString("/** What each method takes and returns, by its name on the wire. */\nexport interface Methods {\n")
	var longRunning []string
	for _, m := range reg.Methods() {
		writeComment(&b, m.Doc, 1)
		fmt.Fprintf(&b, "  %s: {\n", memberName(m.Name))
		fmt.Fprintf(&b, "    params: %s;\n", typeOf(m.Params(), 2))
		fmt.Fprintf(&b, "    result: %s;\n", typeOf(m.Result(), 2))
		b.WriteString("  };\n")
		if m.LongRunning {
			longRunning = append(longRunning, fmt.Sprintf("  %q,\n", m.Name))
		}
	}
	b.WriteString("}\n\n/** The name of a method. */\nexport type Method = keyof Methods;\n")
	b.WriteString("\n/** What a method takes. */\nexport type Params<M extends Method> = Methods[M][\"params\"];\n")
	b.WriteString("\n/** What a method returns. */\nexport type Result<M extends Method> = Methods[M][\"result\"];\n")
	b.WriteString("\n/** The methods that may take as long as a person or an agent does; $/cancelRequest cancels them. */\n")
	fmt.Fprintf(&b, "export const longRunning: ReadonlySet<Method> = new Set<Method>([\n%s]);\n", strings.Join(longRunning, ""))
	return b.String()
}

// typeOf is the type of the JSON that a schema allows; what stands in it is
// indented by depth.
func typeOf(s *schema.Schema, depth int) string {
	if s.Nullable && s.Type != "" {
		plain := *s
		plain.Nullable = false
		return typeOf(&plain, depth) + " | null"
	}
	switch {
	case s.Enum != nil:
		var values []string
		for _, value := range s.Enum {
			values = append(values, strconv.Quote(value))
		}
		return strings.Join(values, " | ")
	case s.Type == "array" && s.Items != nil:
		return "Array<" + typeOf(s.Items, depth) + ">"
	case s.Type == "array":
		return "Array<unknown>"
	case s.Values != nil:
		return "Record<string, " + typeOf(s.Values, depth) + ">"
	case s.Type == "object" && len(s.Properties) > 0:
		var b strings.Builder
		b.WriteString("{\n")
		for _, p := range s.Properties {
			writeComment(&b, p.Schema.Description, depth+1)
			optional := "?"
			if p.Required {
				optional = ""
			}
			fmt.Fprintf(&b, "%s%s%s: %s;\n", indent(depth+1), memberName(p.Name), optional, typeOf(p.Schema, depth+1))
		}
		b.WriteString(indent(depth) + "}")
		return b.String()
	case s.Type == "object":
		return "Record<string, never>"
	case s.Type == "integer":
		return "number"
	case s.Type == "":
		return "unknown"
	}
	return s.Type
}

var identifier = lazyregexp.New(`^[A-Za-z_$][\w$]*$`)

// memberName is a name as it stands before the colon of a member.
func memberName(name string) string {
	if identifier().MatchString(name) {
		return name
	}
	return strconv.Quote(name)
}

// writeComment writes a documentation comment, if there is anything to say.
func writeComment(b *strings.Builder, text string, depth int) {
	if text != "" {
		fmt.Fprintf(b, "%s/** %s */\n", indent(depth), strings.ReplaceAll(text, "*/", "*\\/"))
	}
}

func indent(depth int) string { return strings.Repeat("  ", depth) }
