// Package openrpc describes a registry's methods: as an OpenRPC 1.3 document
// for rpc.discover, and as the Markdown of docs/protocol.md.
package openrpc

import (
	"github.com/duet-rpc/duet-rpc/server"
	"github.com/duet-rpc/duet-rpc/server/schema"
)

// A Document is an OpenRPC document (https://spec.open-rpc.org, version 1.3).
type Document struct {
	OpenRPC string   `json:"openrpc"`
	Info    Info     `json:"info"`
	Methods []Method `json:"methods"`
}

// Info names the service.
type Info struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Version     string `json:"version"`
}

// A Method is one method of the service.
type Method struct {
	Name           string              `json:"name"`
	Summary        string              `json:"summary"`
	ParamStructure string              `json:"paramStructure"`
	Params         []ContentDescriptor `json:"params"`
	Result         ContentDescriptor   `json:"result"`
	// LongRunning is an extension: the method runs beside others and can be
	// cancelled with $/cancelRequest.
	LongRunning bool `json:"x-long-running,omitempty"`
}

// A ContentDescriptor is a parameter or a result.
type ContentDescriptor struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Required    bool           `json:"required,omitempty"`
	Schema      *schema.Schema `json:"schema"`
}

// Describe makes the document of a registry's methods.
func Describe(reg *server.Registry, version string) Document {
	doc := Document{
		OpenRPC: "1.3.2",
		Info: Info{
			Title:       "duet-rpc",
			Description: "The process that an editor starts to work with coding agents.",
			Version:     version,
		},
		Methods: []Method{},
	}
	for _, m := range reg.Methods() {
		d := Method{
			Name: m.Name, Summary: m.Doc, ParamStructure: "by-name", LongRunning: m.LongRunning,
			Params: []ContentDescriptor{},
			Result: ContentDescriptor{Name: "result", Schema: m.Result()},
		}
		if m.Params().Type == "array" {
			d.ParamStructure = "by-position"
		}
		for _, p := range m.Params().Properties {
			schema := *p.Schema
			schema.Description = "" // it stands beside the schema
			d.Params = append(d.Params, ContentDescriptor{p.Name, p.Schema.Description, p.Required, &schema})
		}
		doc.Methods = append(doc.Methods, d)
	}
	return doc
}
