// Package content reads content blocks: images, sounds, resources and links to
// some, as the Agent Client Protocol spells them. What comes from a client or an
// agent is not trusted: each block is bounded, its bytes are decoded, and it is
// told which part of it is wrong.
package content

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// The most that is taken.
const (
	MaxBlock  = 10 << 20 // bytes of a block
	MaxPrompt = 20 << 20 // bytes of all blocks of a prompt
	MaxBlocks = 100      // of a prompt, of a message or of a tool call

	maxURI   = 4 << 10
	maxName  = 1 << 10
	maxText  = 4 << 10 // of a title or a description
	maxExtra = 8 << 10 // of annotations, and of _meta
)

// An Error says what is wrong with a block. It has nothing of the block's own
// that is not bounded and readable.
type Error struct {
	Member   string // such as data or resource.uri
	Expected string
	Received string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("%s of a content block: expected %s, got %s", e.Member, e.Expected, e.Received)
}

// Read is a block with its bytes. The error is an [*Error]. A text is none: it has
// its own place.
func Read(b catalog.ContentBlock) (domain.Content, error) {
	c := domain.Content{Block: domain.Block{
		Type: b.Type, MIMEType: b.MIMEType, Name: b.Name, Title: b.Title, Description: b.Description, URI: b.URI,
		Annotations: bounded(b.Annotations), Meta: bounded(b.Meta),
	}}
	var err error
	switch b.Type {
	case domain.BlockImage, domain.BlockAudio:
		if !strings.HasPrefix(strings.ToLower(b.MIMEType), b.Type+"/") {
			return c, &Error{"mimeType", "one that begins with " + b.Type + "/", shown(b.MIMEType)}
		}
		c.Data, err = decode("data", b.Data)
	case domain.BlockResource:
		r := b.Resource
		if r == nil {
			return c, &Error{"resource", "an object with uri, and text or blob", "none"}
		}
		c.URI, c.MIMEType = r.URI, r.MIMEType
		switch {
		case r.URI == "":
			return c, &Error{"resource.uri", "where it came from", "none"}
		case r.Text != nil && len(*r.Text) > MaxBlock:
			return c, tooLong("resource.text", len(*r.Text))
		case r.Text != nil:
			c.Data = []byte(strings.ToValidUTF8(*r.Text, "\uFFFD"))
		default:
			c.Binary = true
			c.Data, err = decode("resource.blob", r.Blob)
		}
		c.Name = cmp.Or(c.Name, base(r.URI))
	case domain.BlockResourceLink:
		if b.URI == "" {
			return c, &Error{"uri", "where it can be had", "none"}
		}
		c.Size, c.Name = max(b.Size, 0), cmp.Or(c.Name, base(b.URI))
	default:
		return c, &Error{"type", "image, audio, resource or resource_link", shown(b.Type)}
	}
	if err != nil {
		return c, err
	}
	if c.Data != nil {
		Seal(&c)
	}
	return c, check(c.Block)
}

// Seal names a block's bytes, after they have changed.
func Seal(c *domain.Content) {
	c.Attachment, c.Size = domain.AttachmentID(c.Data), int64(len(c.Data))
}

// mimeType is a type and a subtype, with parameters.
var mimeType = lazyregexp.New(`^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+( *;[ -~]*)?$`)

func check(b domain.Block) error {
	if b.MIMEType != "" && (len(b.MIMEType) > 200 || !mimeType().MatchString(b.MIMEType)) {
		return &Error{"mimeType", "a type such as image/png", shown(b.MIMEType)}
	}
	for _, m := range []struct {
		name, value string
		most        int
	}{{"uri", b.URI, maxURI}, {"name", b.Name, maxName}, {"title", b.Title, maxText}, {"description", b.Description, maxText}} {
		switch {
		case len(m.value) > m.most:
			return &Error{m.name, fmt.Sprintf("at most %d bytes", m.most), fmt.Sprintf("%d bytes", len(m.value))}
		case !utf8.ValidString(m.value), m.name == "uri" && strings.ContainsFunc(m.value, unicode.IsControl):
			return &Error{m.name, "text without control characters", shown(m.value)}
		}
	}
	return nil
}

// decode is the bytes of base64.
func decode(member, text string) ([]byte, error) {
	if text == "" {
		return nil, &Error{member, "bytes in base64", "none"}
	}
	if n := base64.RawStdEncoding.DecodedLen(len(text)); n > MaxBlock+3 { // padding, at most
		return nil, tooLong(member, n)
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		data, err = base64.RawStdEncoding.DecodeString(text)
	}
	switch {
	case err != nil:
		return nil, &Error{member, "bytes in base64", "another text"}
	case len(data) == 0:
		return nil, &Error{member, "bytes in base64", "none"}
	case len(data) > MaxBlock:
		return nil, tooLong(member, len(data))
	}
	return data, nil
}

func tooLong(member string, n int) *Error {
	return &Error{member, fmt.Sprintf("at most %d bytes", MaxBlock), fmt.Sprintf("%d bytes", n)}
}

// shown is the beginning of a text, with what could not be read written out.
func shown(text string) string {
	const most = 60
	if len(text) > most {
		text = text[:most] + "…"
	}
	return fmt.Sprintf("%+q", text)
}

// bounded is JSON that is not too long, or nothing.
func bounded(raw json.RawMessage) json.RawMessage {
	if len(raw) > maxExtra || len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

// base is the last part of a URI, which is what it is called if nobody says.
func base(uri string) string {
	uri, _, _ = strings.Cut(uri, "?")
	name := path.Base(strings.TrimSuffix(uri, "/"))
	if len(name) > maxName || name == "." || name == "/" {
		return ""
	}
	return name
}

// Write spells a block for an executor.
func Write(c domain.Content) catalog.ContentBlock {
	b := catalog.ContentBlock{
		Type: c.Type, MIMEType: c.MIMEType, Name: c.Name, Title: c.Title, Description: c.Description, URI: c.URI,
		Annotations: c.Annotations, Meta: c.Meta,
	}
	switch c.Type {
	case domain.BlockResource:
		r := &catalog.Resource{URI: c.URI, MIMEType: c.MIMEType}
		if c.Binary {
			r.Blob = base64.StdEncoding.EncodeToString(c.Data)
		} else {
			text := string(c.Data)
			r.Text = &text
		}
		b.Resource, b.URI, b.MIMEType = r, "", ""
	case domain.BlockResourceLink:
		b.Size = c.Size
	default:
		b.Data = base64.StdEncoding.EncodeToString(c.Data)
	}
	return b
}
