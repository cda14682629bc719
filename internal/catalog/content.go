package catalog

import "encoding/json"

// A ContentBlock is a piece of content as the Agent Client Protocol spells it. Ours,
// in what the executor catalog has.
type ContentBlock struct {
	Type        string    `json:"type" doc:"text, image, audio, resource or resource_link."`
	Text        string    `json:"text,omitempty" doc:"Of a text."`
	MIMEType    string    `json:"mimeType,omitempty" doc:"Such as image/png. An image and a sound need one."`
	Data        string    `json:"data,omitempty" doc:"Of an image and a sound: the bytes, in base64."`
	URI         string    `json:"uri,omitempty" doc:"Of a link: where it can be had. Of an image: where it came from."`
	Name        string    `json:"name,omitempty" doc:"Of a link: what it is called."`
	Title       string    `json:"title,omitempty"`
	Description string    `json:"description,omitempty"`
	Size        int64     `json:"size,omitempty" doc:"Of a link: in bytes."`
	Resource    *Resource `json:"resource,omitempty" doc:"Of a resource."`

	Annotations json.RawMessage `json:"annotations,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

// A Resource is a file's contents, or what is like one.
type Resource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty" doc:"This or blob."`
	Blob     string  `json:"blob,omitempty" doc:"The bytes, in base64."`
}

// MessageContent is a part of what an agent says, or thinks, that is no text. It stands by
// itself, between messages.
type MessageContent struct {
	Content  ContentBlock `json:"content"`
	ParentID string       `json:"parent_id,omitempty" doc:"The tool call of the sub-agent that says it. Ours."`
	Thought  bool         `json:"thought,omitempty" doc:"It is part of a thought. Ours."`
}
