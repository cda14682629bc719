package domain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// An AgentSession is an agent's report about its session: its settings and their values. A nil
// part was not reported.
type AgentSession struct {
	Agent    *AgentInfo     `json:"agent,omitempty"`
	Modes    *Selection     `json:"mode,omitempty"`
	Models   *Selection     `json:"model,omitempty"`
	Options  []AgentOption  `json:"options,omitzero"`  // in the agent's order, with those for the mode and the model
	Commands []AgentCommand `json:"commands,omitzero"` // slash commands
	Info     *SessionInfo   `json:"info,omitempty"`
	Takes    *PromptTakes   `json:"takes,omitempty"`

	Background []BackgroundTask `json:"background,omitzero"` // work between prompts
}

// A BackgroundTask is work of an agent while no prompt runs: an open tool call, a program, or a
// goal.
type BackgroundTask struct {
	ID    string `json:"id"`
	Kind  string `json:"kind" doc:"tool_call, terminal, process, or goal: what the agent works towards in turn after turn."` // one of the values below
	Title string `json:"title,omitempty" doc:"A tool call's title, or a command, such as /goal with its text."`

	Stoppable bool `json:"stoppable,omitempty" doc:"The task can be stopped alone."` // alone
}

// Values of BackgroundTask.Kind.
const (
	BackgroundToolCall = "tool_call"
	BackgroundTerminal = "terminal"
	BackgroundProcess  = "process"
	BackgroundGoal     = "goal" // the agent works towards it in turn after turn
)

// PromptTakes says which content an agent accepts in prompts, in addition to text and links.
type PromptTakes struct {
	Image    bool `json:"image,omitempty"`
	Audio    bool `json:"audio,omitempty"`
	Resource bool `json:"resource,omitempty" doc:"With its bytes. Without this, resources become links."` // with its bytes; others become links
}

// String lists the kinds of content.
func (p PromptTakes) String() string {
	can := "text"
	for _, one := range []struct {
		takes bool
		name  string
	}{{p.Image, "images"}, {p.Audio, "audio"}, {p.Resource, "resources"}} {
		if one.takes {
			can += ", " + one.name
		}
	}
	return can + " and links to resources"
}

// AgentInfo is the agent's program, as the agent names it.
type AgentInfo struct {
	Name    string `json:"name,omitempty"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version,omitempty"`
}

// A Selection is a set of choices and the current one.
type Selection struct {
	Current string   `json:"current" doc:"An id. Empty if the agent does not report it."` // an ID, or "" if the agent does not report it
	Choices []Choice `json:"available"`
}

// A Choice is a value of an agent's setting.
type Choice struct {
	ID          string          `json:"id"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Group       string          `json:"group,omitempty" doc:"The heading under which the agent lists it."` // its heading in a list, or ""
	Extra       json.RawMessage `json:"extra,omitempty" doc:"The agent's other members, unchanged."`       // an object with the agent's other members, or absent
}

// An AgentOption is a setting that an agent defines, such as its thinking effort.
type AgentOption struct {
	ID          string          `json:"id"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Category    string          `json:"category,omitempty" doc:"mode, model, thought_level, or another word."`               // mode, model, thought_level, or another word
	Type        string          `json:"type,omitempty" doc:"select, boolean, or another word."`                              // select, boolean, or another word
	Current     string          `json:"current" doc:"The id of a value; boolean: true or false. Empty for an unknown type."` // a value's ID, or true or false; "" for an unknown type
	Choices     []Choice        `json:"values" doc:"The available values. Empty for an unknown type."`
	Extra       json.RawMessage `json:"extra,omitempty" doc:"The agent's other members, unchanged."` // an object with the agent's other members, or absent
}

// An AgentCommand is a slash command of an agent.
type AgentCommand struct {
	Name        string          `json:"name" doc:"Without the slash."`
	Description string          `json:"description,omitempty"`
	InputHint   string          `json:"input_hint,omitempty" doc:"Describes the text that may follow."` // describes the text that may follow
	Extra       json.RawMessage `json:"extra,omitempty" doc:"The agent's other members, unchanged."`    // an object with the agent's other members, or absent
}

// SessionInfo is the agent's title of its session.
type SessionInfo struct {
	Title   string `json:"title,omitempty"`
	Updated string `json:"updated_at,omitempty" doc:"In the agent's format."` // in the agent's format, mostly RFC 3339
}

// AgentSessionSeen is the last report about the session of a session.
type AgentSessionSeen struct {
	AgentSession `db:"report"`
	Session      int64     `db:"session"`
	Agent        string    `db:"agent"` // its name in the configuration
	Seen         time.Time `db:"seen"`  // by a clock that is never set back (store.Store, Latest)
}

// Update takes over the reported parts of now, and returns those that differ. changed is false if
// none does.
func (s *AgentSession) Update(now AgentSession) (parts AgentSession, changed bool) {
	took := func(differs bool) bool { changed = changed || differs; return differs }
	if now.Agent != nil && took(!reflect.DeepEqual(s.Agent, now.Agent)) {
		s.Agent, parts.Agent = now.Agent, now.Agent
	}
	if now.Modes != nil && took(!reflect.DeepEqual(s.Modes, now.Modes)) {
		s.Modes, parts.Modes = now.Modes, now.Modes
	}
	if now.Models != nil && took(!reflect.DeepEqual(s.Models, now.Models)) {
		s.Models, parts.Models = now.Models, now.Models
	}
	if now.Options != nil && took(s.Options == nil || !slices.EqualFunc(s.Options, now.Options, equal)) {
		s.Options, parts.Options = now.Options, now.Options
	}
	if now.Commands != nil && took(s.Commands == nil || !slices.EqualFunc(s.Commands, now.Commands, equal)) {
		s.Commands, parts.Commands = now.Commands, now.Commands
	}
	if now.Info != nil && took(!reflect.DeepEqual(s.Info, now.Info)) {
		s.Info, parts.Info = now.Info, now.Info
	}
	if now.Takes != nil && took(!reflect.DeepEqual(s.Takes, now.Takes)) {
		s.Takes, parts.Takes = now.Takes, now.Takes
	}
	if now.Background != nil && took(!slices.Equal(s.Background, now.Background)) {
		s.Background, parts.Background = now.Background, now.Background
	}
	return parts, changed
}

func equal[T any](a, b T) bool { return reflect.DeepEqual(a, b) }

// Mode is the agent's current mode, or "".
func (s AgentSession) Mode() string { return s.Modes.current() }

// Model is the agent's current model, or "".
func (s AgentSession) Model() string { return s.Models.current() }

// TellsModes reports whether the agent has modes of its own.
func (s AgentSession) TellsModes() bool { return s.Modes != nil && len(s.Modes.Choices) > 0 }

// TellsModels reports whether the agent lists its models.
func (s AgentSession) TellsModels() bool { return s.Models != nil && len(s.Models.Choices) > 0 }

// Option finds an option by its ID.
func (s AgentSession) Option(id string) (AgentOption, bool) {
	for _, o := range s.Options {
		if o.ID == id {
			return o, true
		}
	}
	return AgentOption{}, false
}

func (s *Selection) current() string {
	if s == nil {
		return ""
	}
	return s.Current
}

// Has reports whether there is a choice.
func (s Selection) Has(id string) bool { return slices.Contains(IDs(s.Choices), id) }

// IDs lists the IDs of choices.
func IDs(choices []Choice) []string {
	list := make([]string, len(choices))
	for i, c := range choices {
		list[i] = c.ID
	}
	return list
}

// Size is the approximate length of the texts, in bytes.
func (s AgentSession) Size() int {
	n := fieldsSize
	for _, selection := range []*Selection{s.Modes, s.Models} {
		if selection != nil {
			n += sizeOf(selection.Choices)
		}
	}
	for _, o := range s.Options {
		n += 64 + len(o.Name) + len(o.Description) + len(o.Extra) + sizeOf(o.Choices)
	}
	for _, c := range s.Commands {
		n += 64 + len(c.Name) + len(c.Description) + len(c.InputHint) + len(c.Extra)
	}
	return n
}

func sizeOf(choices []Choice) (n int) {
	for _, c := range choices {
		n += 64 + len(c.ID) + len(c.Name) + len(c.Description) + len(c.Group) + len(c.Extra)
	}
	return n
}

// An Option is an answer that a question offers.
type Option struct {
	ID   string // "" in a client's question, where the Name is the id
	Name string
	Kind OptionKind
	// Extra has the other members of the JSON object, unchanged; clients get them as they
	// are. nil: there are none.
	Extra map[string]json.RawMessage
}

// optionMembers are the members of an option's JSON object that have fields of their own.
type optionMembers struct {
	ID   string     `json:"option_id,omitempty"`
	Name string     `json:"name,omitempty"`
	Kind OptionKind `json:"kind,omitempty"`
}

// MarshalJSON writes the option as an object, with Extra behind its own members.
func (o Option) MarshalJSON() ([]byte, error) {
	object, err := json.Marshal(optionMembers{o.ID, o.Name, o.Kind})
	if err != nil || len(o.Extra) == 0 {
		return object, err
	}
	b := bytes.NewBuffer(bytes.TrimSuffix(object, []byte("}")))
	for _, name := range slices.Sorted(maps.Keys(o.Extra)) {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		quoted, _ := json.Marshal(name) // a string: it cannot fail
		b.Write(quoted)
		b.WriteByte(':')
		b.Write(o.Extra[name])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads an object that [Option.MarshalJSON] wrote, or a client.
func (o *Option) UnmarshalJSON(data []byte) error {
	var members optionMembers
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	var extra map[string]json.RawMessage
	if err := json.Unmarshal(data, &extra); err != nil {
		return err
	}
	maps.DeleteFunc(extra, func(name string, _ json.RawMessage) bool { // as encoding/json matches names
		return strings.EqualFold(name, "option_id") || strings.EqualFold(name, "name") || strings.EqualFold(name, "kind")
	})
	if len(extra) == 0 {
		extra = nil
	}
	*o = Option{ID: members.ID, Name: members.Name, Kind: members.Kind, Extra: extra}
	return nil
}

// String describes the option and the effect of its kind, for people.
func (o Option) String() string {
	name := cmp.Or(o.Name, o.ID)
	switch o.Kind {
	case AllowAlways:
		return name + " (allows; the agent remembers it)"
	case AllowOnce:
		return name + " (allows)"
	case RejectAlways:
		return name + " (denies; the agent remembers it)"
	case RejectOnce:
		return name + " (denies)"
	}
	return name
}

// An OptionKind is the effect of an option, in the words of the Agent Client Protocol
// (PermissionOptionKind). Other words are kept unchanged; "" is unknown.
type OptionKind string

// Kinds of options.
const (
	AllowOnce    OptionKind = "allow_once"
	AllowAlways  OptionKind = "allow_always"
	RejectOnce   OptionKind = "reject_once"
	RejectAlways OptionKind = "reject_always"
)

// Choices lists the options that an agent offers for a choice: it receives the chosen option and
// no other words. Options of clients have no kind and are left out.
func Choices(options []Option) (list []Option) {
	for _, o := range options {
		if o.ID != "" && o.Kind != "" && !o.Kind.Rejects() {
			list = append(list, o)
		}
	}
	return list
}

// AnswersOf returns the possible answers to a question of a type with an elicitation and options.
func AnswersOf(question string, e Elicitation, options []Option) Answers {
	if question != HumanContact {
		return Answers{}
	}
	n := len(Choices(options))
	return Answers{
		OptionsOnly: e.Mode == "" && n > 1, // with one option, words go with it
		Declinable:  e.Mode != "" || n > 0,
	}
}

// Answers are the possible answers to a question that is not about a tool.
type Answers struct {
	OptionsOnly bool // only one of its options
	Declinable  bool // also a denial: nothing was chosen or filled in
}

// Rejects reports whether the option denies. An unknown kind does if it begins like the known ones.
func (k OptionKind) Rejects() bool { return strings.HasPrefix(string(k), "reject_") }

// An AuthMethod is a way to sign in that an agent offers.
type AuthMethod struct {
	ID          string `json:"id" doc:"For agent.login, and for duet-rpc agents login --method."`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Type        string `json:"type" doc:"agent: the agent does it itself, usually in a browser. terminal: a program in a terminal does it. env_var: variables of the agent's environment do it."` // agent, terminal, env_var, or another word
}

// An MCPServer is a server of the Model Context Protocol for an agent: a program or a URL.
type MCPServer struct {
	Name    string            `json:"name"`
	Command string            `json:"command,omitempty"` // of a program
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Type    string            `json:"type,omitempty"` // stdio, http or sse; "": stdio
	URL     string            `json:"url,omitempty"`  // of an http or sse server
	Headers map[string]string `json:"headers,omitempty"`
}
