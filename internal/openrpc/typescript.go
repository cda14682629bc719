package openrpc

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/server"
	"github.com/duet-rpc/duet-rpc/server/schema"
)

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
