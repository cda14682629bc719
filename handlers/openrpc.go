package handlers

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
	"github.com/duet-rpc/duet-rpc/server/schema"
)

// Descriptions of a registry's methods: the OpenRPC 1.3 document of rpc.discover, the Markdown of
// docs/methods.md, and TypeScript.

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
	// LongRunning is an extension of Duet: the method runs beside others, and $/cancelRequest cancels it.
	LongRunning bool `json:"x-long-running,omitempty"`
}

// A contentDescriptor is a parameter or a result.
type contentDescriptor struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Required    bool           `json:"required,omitempty"`
	Schema      *schema.Schema `json:"schema"`
}

// Describe returns the document of a registry's methods.
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
			schema.Description = "" // the caller writes it beside the schema
			d.Params = append(d.Params, contentDescriptor{p.Name, p.Schema.Description, p.Required, &schema})
		}
		doc.Methods = append(doc.Methods, d)
	}
	return doc
}

// Markdown returns the reference of a registry's methods.
func Markdown(reg *server.Registry) string {
	var b strings.Builder
	methods := reg.Methods()
	b.WriteString("| method | effect |\n| --- | --- |\n")
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

// EventsMarkdown returns the reference of the kinds of events. inHumanLayer returns the name of a kind in
// HumanLayer's dialect.
func EventsMarkdown(inHumanLayer func(domain.EventKind) string) string {
	b := new(strings.Builder)
	b.WriteString("\n## Kinds of events\n\nThe params of the notification `event`: ")
	writeMembers(b, schema.OfResult(reflect.TypeFor[protocol.Event]()), "")
	b.WriteString("\n| kind | when | in HumanLayer's `Subscribe` |\n| --- | --- | --- |\n")
	for _, k := range protocol.EventKinds {
		theirs := ""
		if k.Stored != nil {
			theirs = "`" + inHumanLayer(k.Stored[0]) + "`"
		}
		fmt.Fprintf(b, "| [`%s`](#event-%s) | %s | %s |\n", k.Name, anchor(k.Name), k.Doc, theirs)
	}
	for _, k := range protocol.EventKinds {
		fmt.Fprintf(b, "\n### Event %s\n\nMembers of `data`:\n\n| member | type | |\n| --- | --- | --- |\n", k.Name)
		writeRows(b, schema.OfResult(k.Data), "")
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

// writeRows writes a row for each member, including the members of nested objects.
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
			about = strings.TrimSpace(about + " One of " + strings.TrimPrefix(strings.Join(p.Schema.Enum, ", "), ", ") + ".")
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %s |\n", prefix, p.Name, kind, about)
		writeRows(b, p.Schema, prefix+p.Name+".")
	}
}

// anchor returns the fragment that a Markdown viewer generates for a heading.
func anchor(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, ".", ""))
}

// TypeScript returns declarations of the parameters and results of a registry's methods, and of all
// kinds of events, for the extension of VS Code. A method is a member of the interface Methods with its name on the wire: as
// identifiers, cancel_task and cancelTask would be equal. Structs and enums have the names of their Go
// types.
func TypeScript(reg *server.Registry) string {
	var methods strings.Builder
	t := typeScript{declared: make(map[string]string)}
	var longRunning []string
	for _, m := range reg.Methods() {
		writeComment(&methods, m.Doc, 1)
		fmt.Fprintf(&methods, "  %s: { params: %s; result: %s };\n", memberName(m.Name), t.typeOf(m.Params(), "Input"), t.typeOf(m.Result(), "Output"))
		if m.LongRunning {
			longRunning = append(longRunning, fmt.Sprintf("  %q,\n", m.Name))
		}
	}
	var events strings.Builder
	for _, k := range protocol.EventKinds {
		writeComment(&events, "When: "+k.Doc+".", 1)
		fmt.Fprintf(&events, "  %s: %s;\n", memberName(k.Name), t.typeOf(schema.OfResult(k.Data), "Data"))
	}
	envelope := t.typeOf(schema.OfResult(reflect.TypeFor[protocol.Event]()), "Data")
	var b strings.Builder
	b.WriteString("// Made by `make generate`. The methods of duet-rpc, as rpc.discover describes them, and the events.\n\n")
	for _, name := range slices.Sorted(maps.Keys(t.declared)) {
		b.WriteString(t.declared[name] + "\n\n")
	}
	b.WriteString("/** The parameters and the result of each method, by its name on the wire. */\nexport interface Methods {\n" + methods.String())
	b.WriteString("}\n\n/** The name of a method. */\nexport type Method = keyof Methods;\n")
	b.WriteString("\n/** The parameters of a method. */\nexport type Params<M extends Method> = Methods[M][\"params\"];\n")
	b.WriteString("\n/** The result of a method. */\nexport type Result<M extends Method> = Methods[M][\"result\"];\n")
	b.WriteString("\n/** The methods that may take as long as a person or an agent does; $/cancelRequest cancels them. */\n")
	fmt.Fprintf(&b, "export const longRunning: ReadonlySet<Method> = new Set<Method>([\n%s]);\n", strings.Join(longRunning, ""))
	b.WriteString("\n/** The data of each kind of event, by its name on the wire. */\nexport interface Events {\n" + events.String())
	b.WriteString("}\n\n/** The name of a kind of event. */\nexport type EventKind = keyof Events;\n")
	b.WriteString("\n/** The params of a notification \"event\". */\n" +
		"export type HubEvent = { [K in EventKind]: Omit<" + envelope + ", \"kind\" | \"data\"> & { kind: K; data: Events[K] } }[EventKind];\n")
	b.WriteString("\n/** The words for each state of a turn. */\nexport const turnStateWords: Readonly<Record<string, string>> = {\n")
	for _, s := range domain.States() {
		fmt.Fprintf(&b, "  %s: %q,\n", s, s.Words())
	}
	b.WriteString("};\n\n/** The words for each status of an approval. */\nexport const approvalStatusWords: Readonly<Record<string, string>> = {\n")
	for _, s := range domain.ApprovalStatuses() {
		fmt.Fprintf(&b, "  %s: %q,\n", s, domain.StatusWords(s))
	}
	b.WriteString("};\n\n/** The ways to answer a question about a tool: the key, the words and the meaning, the same in each client. */\n" +
		"export const answers = {\n")
	for _, a := range domain.ToolAnswers() {
		fmt.Fprintf(&b, "  %s: { key: %q, words: %q, meaning: %q },\n", a.Name, a.Key, a.Words, a.Meaning)
	}
	b.WriteString("} as const;\n")
	return b.String()
}

// EmacsLisp returns the names of a registry's methods, those of the kinds of events, the words for states,
// statuses and modes, and the answers to questions, for Emacs.
func EmacsLisp(reg *server.Registry) string {
	var b strings.Builder
	b.WriteString(";;; duet-protocol.el --- Names and words of the protocol  -*- lexical-binding: t; -*-\n\n" +
		";; Copyright (c) 2026 The Duet authors\n;; SPDX-License-Identifier: MIT\n\n" +
		";;; Commentary:\n\n;; Made by `make generate' from the server's methods, events and states.\n\n;;; Code:\n")
	list := func(name, doc string, of []string) {
		fmt.Fprintf(&b, "\n(defconst duet-protocol-%s\n  '(%s)\n  %q)\n", name, strings.Join(of, "\n    "), doc)
	}
	var methods, kinds, words, statuses, modes, answers []string
	for _, m := range reg.Methods() {
		methods = append(methods, m.Name)
	}
	for _, k := range protocol.EventKinds {
		kinds = append(kinds, strconv.Quote(k.Name))
	}
	for _, s := range domain.States() {
		words = append(words, fmt.Sprintf("(%s . %q)", s, s.Words()))
	}
	for _, s := range domain.ApprovalStatuses() {
		statuses = append(statuses, fmt.Sprintf("(%s . %q)", s, domain.StatusWords(s)))
	}
	for _, id := range []string{catalog.ModeDefault, catalog.ModeAcceptEdits, catalog.ModePlan, catalog.ModeBypass} {
		modes = append(modes, fmt.Sprintf("(%q . %q)", id, duetsModes[id].Name))
	}
	for _, a := range domain.ToolAnswers() {
		answers = append(answers, fmt.Sprintf("(%s %q %q %q)", a.Name, a.Key, a.Words, a.Meaning))
	}
	list("methods", "The methods of the server, as symbols.", methods)
	list("kinds", "The kinds of events.", kinds)
	list("state-words", "The words for each state of a turn.", words)
	list("status-words", "The words for each status of an approval.", statuses)
	list("modes", "The names of Duet's permission modes, by their ids.", modes)
	list("answers", "The ways to answer a question about a tool: name, key, words and meaning.", answers)
	b.WriteString("\n(provide 'duet-protocol)\n;;; duet-protocol.el ends here\n")
	return b.String()
}

// GoCalls returns the source of package hubclient's calls: a function for each method of a noun whose
// parameters and result are types of package protocol, and the list of the long-running methods.
func GoCalls(reg *server.Registry) string {
	var b strings.Builder
	b.WriteString("// Code generated from the registry of methods by `make generate`. DO NOT EDIT.\n\n" +
		"package hubclient\n\nimport (\n\t\"context\"\n\t\"encoding/json\"\n\n" +
		"\t\"github.com/duet-rpc/duet-rpc/client\"\n\t\"github.com/duet-rpc/duet-rpc/internal/protocol\"\n)\n")
	for _, m := range reg.Methods() {
		params, result := m.Types()
		if !isOfNoun(m.Name) || !isProtocol(result) || !isProtocol(params) && !isEmpty(params) {
			continue
		}
		name := goName(m.Name)
		fmt.Fprintf(&b, "\n// %s calls %s. It also returns the result as it came.\n", name, m.Name)
		takes, given := "", "nil"
		if !isEmpty(params) {
			takes, given = ", p protocol."+params.Name(), "p"
		}
		fmt.Fprintf(&b, "func %s(ctx context.Context, c *client.Client%s) (protocol.%s, json.RawMessage, error) {\n"+
			"\treturn Call[protocol.%s](ctx, c, %q, %s)\n}\n", name, takes, result.Name(), result.Name(), m.Name, given)
	}
	b.WriteString("\n// untilDone are the methods that last as long as a person, an agent, git or another program does.\nvar untilDone = []string{\n")
	for _, m := range reg.Methods() {
		if m.LongRunning {
			fmt.Fprintf(&b, "\t%q,\n", m.Name)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// isOfNoun reports whether a method has a name of Duet's own form; task and chat are AIWG's.
func isOfNoun(method string) bool {
	noun, _, found := strings.Cut(method, ".")
	return found && noun != "task" && noun != "chat" && noun != "rpc"
}

func isEmpty(t reflect.Type) bool { return t != nil && t.Kind() == reflect.Struct && t.NumField() == 0 }

func isProtocol(t reflect.Type) bool {
	return t != nil && t.Kind() == reflect.Struct && t.Name() != "" && t.PkgPath() == reflect.TypeFor[protocol.Turn]().PkgPath()
}

// goName returns the name of the function that calls a method: SessionStart for session.start.
func goName(method string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(method, ".") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// typeScript collects declarations by their names.
type typeScript struct{ declared map[string]string }

// typeOf returns the type of the JSON that a schema allows. suffix is appended to the name of a type
// that differs between parameters and results.
func (t typeScript) typeOf(s *schema.Schema, suffix string) string {
	if s.Nullable && s.Type != "" {
		plain := *s
		plain.Nullable = false
		return t.typeOf(&plain, suffix) + " | null"
	}
	switch {
	case len(s.Types) > 0:
		return strings.ReplaceAll(strings.Join(s.Types, " | "), "integer", "number")
	case s.Enum != nil:
		var values []string
		for _, value := range s.Enum {
			values = append(values, strconv.Quote(value))
		}
		return t.declare(s.Name, suffix, "type %s = "+strings.Join(values, " | ")+";")
	case s.Type == "array" && s.Items != nil:
		return "Array<" + t.typeOf(s.Items, suffix) + ">"
	case s.Type == "array":
		return "Array<unknown>"
	case s.Values != nil:
		return "Record<string, " + t.typeOf(s.Values, suffix) + ">"
	case s.Type == "object" && len(s.Properties) > 0:
		var b, inline strings.Builder
		b.WriteString("type %s = {\n")
		for _, p := range s.Properties {
			writeComment(&b, p.Schema.Description, 1)
			optional := "?"
			if p.Required {
				optional = ""
			}
			member := fmt.Sprintf("%s%s: %s;", memberName(p.Name), optional, t.typeOf(p.Schema, suffix))
			b.WriteString("  " + member + "\n")
			inline.WriteString(" " + member)
		}
		if s.Name == "" {
			return "{" + inline.String() + " }"
		}
		return t.declare(s.Name, suffix, b.String()+"};")
	case s.Type == "object":
		return "Record<string, never>"
	case s.Type == "integer":
		return "number"
	case s.Type == "":
		return "unknown"
	}
	return s.Type
}

// declare declares a type and returns its name. The name replaces %s in text.
func (t typeScript) declare(name, suffix, text string) string {
	name = strings.ToUpper(name[:1]) + name[1:]
	text = "export " + text
	for _, name := range []string{name, name + suffix} {
		whole := strings.Replace(text, "%s", name, 1)
		if known, has := t.declared[name]; !has || known == whole {
			t.declared[name] = whole
			return name
		}
	}
	panic("there are two types " + name)
}

var identifier = lazyregexp.New(`^[A-Za-z_$][\w$]*$`)

// memberName returns a name as TypeScript writes it before the colon of a member.
func memberName(name string) string {
	if identifier().MatchString(name) {
		return name
	}
	return strconv.Quote(name)
}

// writeComment writes a documentation comment, unless the text is empty.
func writeComment(b *strings.Builder, text string, depth int) {
	if text != "" {
		fmt.Fprintf(b, "%s/** %s */\n", indent(depth), strings.ReplaceAll(text, "*/", "*\\/"))
	}
}

func indent(depth int) string { return strings.Repeat("  ", depth) }
