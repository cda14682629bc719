package transcript

import (
	"cmp"
	"context"
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
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// This file reads content blocks of the Agent Client Protocol: images, sounds, resources and links
// to resources. Blocks from clients and agents are untrusted: each is limited in size and decoded,
// and an error names its invalid member.

// Limits of content.
const (
	MaxBlock  = 10 << 20 // bytes of a block
	maxPrompt = 20 << 20 // bytes of all blocks of a prompt
	MaxBlocks = 100      // per prompt, message or tool call

	maxURI   = 4 << 10
	maxName  = 1 << 10
	maxText  = 4 << 10 // title or description
	maxExtra = 8 << 10 // annotations, and _meta
)

// contentError describes an invalid block. It repeats only limited, readable parts of the block.
type contentError struct {
	Member   string // such as data or resource.uri
	Expected string
	Received string
}

func (e *contentError) Error() string {
	return fmt.Sprintf("%s of a content block: expected %s, got %s", e.Member, e.Expected, e.Received)
}

// ReadContent decodes a block. The error is a [*contentError]. A text block is refused, because
// text is stored separately.
func ReadContent(b catalog.ContentBlock) (domain.Content, error) {
	c := domain.Content{Block: domain.Block{
		Type: b.Type, MIMEType: b.MIMEType, Name: b.Name, Title: b.Title, Description: b.Description, URI: b.URI,
		Annotations: bounded(b.Annotations), Meta: bounded(b.Meta),
	}}
	var err error
	switch b.Type {
	case domain.BlockImage, domain.BlockAudio:
		if !strings.HasPrefix(strings.ToLower(b.MIMEType), b.Type+"/") {
			return c, &contentError{"mimeType", "one that begins with " + b.Type + "/", shown(b.MIMEType)}
		}
		c.Data, err = decode("data", b.Data)
	case domain.BlockResource:
		r := b.Resource
		if r == nil {
			return c, &contentError{"resource", "an object with uri, and text or blob", "none"}
		}
		c.URI, c.MIMEType = r.URI, r.MIMEType
		switch {
		case r.URI == "":
			return c, &contentError{"resource.uri", "where it came from", "none"}
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
			return c, &contentError{"uri", "where it can be had", "none"}
		}
		c.Size, c.Name = max(b.Size, 0), cmp.Or(c.Name, base(b.URI))
	default:
		return c, &contentError{"type", "image, audio, resource or resource_link", shown(b.Type)}
	}
	if err != nil {
		return c, err
	}
	if c.Data != nil {
		Seal(&c)
	}
	return c, check(c.Block)
}

// Seal sets a block's name and size after its bytes have changed.
func Seal(c *domain.Content) {
	c.Attachment, c.Size = domain.AttachmentID(c.Data), int64(len(c.Data))
}

// mimeType matches a type and a subtype, with parameters.
var mimeType = lazyregexp.New(`^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+( *;[ -~]*)?$`)

func check(b domain.Block) error {
	if b.MIMEType != "" && (len(b.MIMEType) > 200 || !mimeType().MatchString(b.MIMEType)) {
		return &contentError{"mimeType", "a type such as image/png", shown(b.MIMEType)}
	}
	for _, m := range []struct {
		name, value string
		most        int
	}{{"uri", b.URI, maxURI}, {"name", b.Name, maxName}, {"title", b.Title, maxText}, {"description", b.Description, maxText}} {
		switch {
		case len(m.value) > m.most:
			return &contentError{m.name, fmt.Sprintf("at most %d bytes", m.most), fmt.Sprintf("%d bytes", len(m.value))}
		case !utf8.ValidString(m.value), m.name == "uri" && strings.ContainsFunc(m.value, unicode.IsControl):
			return &contentError{m.name, "text without control characters", shown(m.value)}
		}
	}
	return nil
}

// decode decodes base64.
func decode(member, text string) ([]byte, error) {
	if text == "" {
		return nil, &contentError{member, "bytes in base64", "none"}
	}
	if n := base64.RawStdEncoding.DecodedLen(len(text)); n > MaxBlock+3 { // up to 3 bytes of padding
		return nil, tooLong(member, n)
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		data, err = base64.RawStdEncoding.DecodeString(text)
	}
	switch {
	case err != nil:
		return nil, &contentError{member, "bytes in base64", "another text"}
	case len(data) == 0:
		return nil, &contentError{member, "bytes in base64", "none"}
	case len(data) > MaxBlock:
		return nil, tooLong(member, len(data))
	}
	return data, nil
}

func tooLong(member string, n int) *contentError {
	return &contentError{member, fmt.Sprintf("at most %d bytes", MaxBlock), fmt.Sprintf("%d bytes", n)}
}

// shown returns the beginning of a text, with unreadable characters escaped.
func shown(text string) string {
	const most = 60
	if len(text) > most {
		text = text[:most] + "…"
	}
	return fmt.Sprintf("%+q", text)
}

// bounded returns raw JSON, or nil if it is too long.
func bounded(raw json.RawMessage) json.RawMessage {
	if len(raw) > maxExtra || len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

// base returns the last part of a URI, the default name.
func base(uri string) string {
	uri, _, _ = strings.Cut(uri, "?")
	name := path.Base(strings.TrimSuffix(uri, "/"))
	if len(name) > maxName || name == "." || name == "/" {
		return ""
	}
	return name
}

// writeContent encodes a block for an executor.
func writeContent(c domain.Content) catalog.ContentBlock {
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

// Prompt reads the blocks of a prompt, in addition to its text, and returns its whole text and what is
// no text. The error is a *domain.Error that names the wrong block as a parameter.
func Prompt(text string, blocks []catalog.ContentBlock) (whole string, content []domain.Content, err error) {
	if len(blocks) > MaxBlocks {
		return "", nil, domain.Invalid("content", fmt.Sprintf("at most %d blocks", MaxBlocks), fmt.Sprint(len(blocks)))
	}
	var said []string
	if text != "" {
		said = append(said, text)
	}
	var size int64
	for i, b := range blocks {
		if b.Type == "text" {
			said = append(said, b.Text)
			continue
		}
		c, err := ReadContent(b)
		if wrong, is := err.(*contentError); is {
			return "", nil, domain.Invalid(fmt.Sprintf("content[%d].%s", i, wrong.Member), wrong.Expected, wrong.Received)
		}
		if size += int64(len(c.Data)); size > maxPrompt {
			return "", nil, domain.Invalid("content", fmt.Sprintf("at most %d bytes in all blocks together", maxPrompt), "more")
		}
		content = append(content, c)
	}
	return strings.Join(said, "\n\n"), content, nil
}

// label describes a block where only text can be shown, such as [image image/png 12 KB].
func label(b domain.Block) string {
	parts := []string{strings.ReplaceAll(b.Type, "_", " ")}
	for _, part := range []string{b.Name, b.MIMEType} {
		if part != "" {
			parts = append(parts, strings.Map(printable, part))
		}
	}
	if b.Size > 0 {
		parts = append(parts, contentSize(b.Size))
	}
	if b.Type == domain.BlockResourceLink {
		parts = append(parts, strings.Map(printable, b.URI))
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// labels returns the labels of blocks, one per line.
func labels(blocks []domain.Block) string {
	lines := make([]string, len(blocks))
	for i, b := range blocks {
		lines[i] = label(b)
	}
	return strings.Join(lines, "\n")
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}

// contentSize formats a number of bytes for people, such as 12 KB.
func contentSize(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000*1000:
		return fmt.Sprintf("%d KB", (n+500)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// Attach stores the bytes of content.
func Attach(t store.Tx, list []domain.Content) error {
	for _, c := range list {
		if c.Attachment == "" {
			continue
		}
		if err := t.PutAttachment(c.Attached()); err != nil {
			return err
		}
	}
	return nil
}

// PromptContent returns the attachments of a turn's prompt with their bytes, for an executor.
func PromptContent(ctx context.Context, r store.Reader, turn domain.Turn) ([]catalog.ContentBlock, error) {
	var blocks []catalog.ContentBlock
	for _, b := range turn.Content {
		c := domain.Content{Block: b}
		if b.Attachment != "" {
			kept, err := r.Attachment(ctx, b.Attachment)
			if err != nil {
				return nil, err
			}
			c.Data = kept.Data
		}
		blocks = append(blocks, writeContent(c))
	}
	return blocks, nil
}
