package acp

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Versions of the protocol.
const (
	Version1 = 1
	Version2 = 2
)

// An InitializeRequest is the parameters of initialize. An agent reads Info and Capabilities if
// it speaks version 2, and the other two if it speaks version 1.
type InitializeRequest struct {
	ProtocolVersion    int                 `json:"protocolVersion"`
	Info               *Implementation     `json:"info,omitempty"`
	Capabilities       *ClientCapabilities `json:"capabilities,omitempty"`
	ClientInfo         Implementation      `json:"clientInfo"`
	ClientCapabilities ClientCapabilities  `json:"clientCapabilities"`
}

// UnmarshalJSON implements json.Unmarshaler. An unreadable member counts as absent, so that newer
// clients work.
func (r *InitializeRequest) UnmarshalJSON(raw []byte) error {
	var said struct {
		ProtocolVersion                                    int
		Info, Capabilities, ClientInfo, ClientCapabilities json.RawMessage
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return err
	}
	*r = InitializeRequest{ProtocolVersion: said.ProtocolVersion, Info: new(Implementation), Capabilities: new(ClientCapabilities)}
	_ = json.Unmarshal(said.Info, r.Info)
	_ = json.Unmarshal(said.Capabilities, r.Capabilities)
	_ = json.Unmarshal(said.ClientInfo, &r.ClientInfo)
	_ = json.Unmarshal(said.ClientCapabilities, &r.ClientCapabilities)
	return nil
}

// An Implementation is the name and version of a program.
type Implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// ClientCapabilities are a client's capabilities. Files, terminals and plans are of version 1
// only. A raw capability is absent or null if the client does not have it, see [Has].
type ClientCapabilities struct {
	FS       FileCapabilities `json:"fs,omitzero"`
	Terminal bool             `json:"terminal,omitempty"`
	Session  struct {
		ConfigOptions struct {
			Boolean json.RawMessage `json:"boolean,omitempty"` // options that are true or false
		} `json:"configOptions,omitzero"`
		Notices    json.RawMessage `json:"notices,omitempty"`
		Compaction json.RawMessage `json:"compaction,omitempty"`
	} `json:"session,omitzero"`
	Elicitation struct {
		Form json.RawMessage `json:"form,omitempty"`
		URL  json.RawMessage `json:"url,omitempty"`
	} `json:"elicitation,omitzero"`
	Plan json.RawMessage `json:"plan,omitempty"` // plan_update and plan_removed
	Auth struct {
		Terminal json.RawMessage `json:"terminal,omitempty"` // true or, in version 2, an object
	} `json:"auth,omitzero"`
	Meta struct {
		TerminalAuth   bool `json:"terminal-auth,omitempty"`   // the name of Auth.Terminal before it was in the protocol
		TerminalOutput bool `json:"terminal_output,omitempty"` // it shows an agent's terminals
	} `json:"_meta,omitzero"`
}

// SignsInInTerminal reports whether the client runs the agent's program in a terminal for
// the user to sign in.
func (c ClientCapabilities) SignsInInTerminal() bool {
	return Has(c.Auth.Terminal) || c.Meta.TerminalAuth
}

// FileCapabilities lists the file requests that a client serves.
type FileCapabilities struct {
	ReadTextFile  bool `json:"readTextFile"`
	WriteTextFile bool `json:"writeTextFile"`
}

// Offer returns the request that offers both versions: version 1 with its capabilities, and
// version 2 with the capabilities that it has. newest limits the offer to version 1; 0 does not.
func Offer(can ClientCapabilities, newest int) InitializeRequest {
	us := Implementation{Name: "duet", Version: "1"}
	can2 := can
	can2.FS, can2.Terminal, can2.Plan = FileCapabilities{}, false, nil
	if Has(can.Auth.Terminal) {
		can2.Auth.Terminal = Supported
	}
	r := InitializeRequest{ProtocolVersion: Version2, Info: &us, Capabilities: &can2, ClientInfo: us, ClientCapabilities: can}
	if newest == Version1 {
		return r.Fallback()
	}
	return r
}

// Fallback returns the offer of the oldest version, for an agent that refuses the newest.
func (r InitializeRequest) Fallback() InitializeRequest {
	r.ProtocolVersion, r.Info, r.Capabilities = Version1, nil, nil
	return r
}

// Initialized is an agent's description of itself. Values of version 2 are stored in the fields
// of version 1. A raw capability is absent or null if the agent does not have it, see [Has].
type Initialized struct {
	ProtocolVersion int               // Version2; any other value means version 1
	Info            *domain.AgentInfo // nil: not reported
	AuthMethods     []AuthMethod
	canLoad         bool // session/load of version 1
	Prompt          PromptCapabilities
	Session         SessionCapabilities
	MCP             MCPCapabilities
	Auth            AgentAuthCapabilities
	CapabilityMeta  json.RawMessage // _meta of the capabilities
	Meta            json.RawMessage // _meta of the answer
}

// PromptCapabilities lists the content that an agent accepts in prompts beside text and links.
type PromptCapabilities struct {
	Image           bool `json:"image"`
	Audio           bool `json:"audio"`
	EmbeddedContext bool `json:"embeddedContext"`
}

// SessionCapabilities lists the session methods of an agent.
type SessionCapabilities struct {
	List                  json.RawMessage `json:"list,omitempty"`
	Resume                json.RawMessage `json:"resume,omitempty"`
	Close                 json.RawMessage `json:"close,omitempty"`
	Delete                json.RawMessage `json:"delete,omitempty"`
	Fork                  json.RawMessage `json:"fork,omitempty"`
	AdditionalDirectories json.RawMessage `json:"additionalDirectories,omitempty"`
	SystemPrompt          json.RawMessage `json:"systemPrompt,omitempty"`
}

// MCPCapabilities lists the kinds of MCP servers that an agent accepts.
type MCPCapabilities struct {
	Stdio bool `json:"-"` // programs: every agent of version 1
	HTTP  bool `json:"http"`
	SSE   bool `json:"sse"`
}

// Has reports whether a capability is present; null and false are not.
func Has(capability json.RawMessage) bool {
	return len(capability) > 0 && string(capability) != "null" && string(capability) != "false"
}

// Supported is the value of a capability without details.
var Supported = json.RawMessage(`{}`)

// capabilities2 are the capabilities of an agent of version 2.
type capabilities2 struct {
	Session struct {
		SessionCapabilities
		Prompt struct{ Image, Audio, EmbeddedContext json.RawMessage }
		MCP    struct{ Stdio, HTTP json.RawMessage }
	}
	Meta json.RawMessage `json:"_meta"`
}

// UnmarshalJSON implements json.Unmarshaler. Unknown members are ignored, so that newer agents
// work.
func (i *Initialized) UnmarshalJSON(raw []byte) error {
	var said struct {
		ProtocolVersion int
		AuthMethods     []AuthMethod
		Meta            json.RawMessage `json:"_meta"`

		AgentInfo         *domain.AgentInfo // of version 1
		AgentCapabilities struct {
			LoadSession         bool
			PromptCapabilities  PromptCapabilities
			SessionCapabilities SessionCapabilities
			MCPCapabilities     MCPCapabilities
			Auth                AgentAuthCapabilities
			Meta                json.RawMessage `json:"_meta"`
		}

		Info         *domain.AgentInfo // of version 2, which requires it
		Capabilities *capabilities2
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return err
	}
	can := said.AgentCapabilities
	*i = Initialized{
		ProtocolVersion: said.ProtocolVersion, Info: said.AgentInfo, AuthMethods: said.AuthMethods, Meta: said.Meta,
		canLoad: can.LoadSession, Prompt: can.PromptCapabilities, Session: can.SessionCapabilities,
		MCP: can.MCPCapabilities, Auth: can.Auth, CapabilityMeta: can.Meta,
	}
	if said.Info == nil && said.Capabilities == nil {
		i.ProtocolVersion = Version1 // some agents of version 1 answer with any requested version
	}
	if i.ProtocolVersion != Version2 {
		i.MCP.Stdio = true
		return nil
	}
	if said.Capabilities == nil {
		said.Capabilities = &capabilities2{}
	}
	session := said.Capabilities.Session
	i.Info, i.CapabilityMeta, i.Session = said.Info, said.Capabilities.Meta, session.SessionCapabilities
	i.Session.List, i.Session.Resume, i.Session.Close = Supported, Supported, Supported
	i.Prompt = PromptCapabilities{
		Image: Has(session.Prompt.Image), Audio: Has(session.Prompt.Audio), EmbeddedContext: Has(session.Prompt.EmbeddedContext),
	}
	i.MCP.Stdio, i.MCP.HTTP = Has(session.MCP.Stdio), Has(session.MCP.HTTP)
	if len(i.AuthMethods) > 0 {
		i.Auth.Logout = Supported
	}
	return nil
}

func (i *Initialized) isVersion2() bool { return i.ProtocolVersion == Version2 }
