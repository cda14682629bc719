package domain

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// A Block is a piece of content that is no text of a conversation: of a prompt,
// of what an agent says, or of what a tool gives back. It has no bytes, but says
// under which id they are kept.
type Block struct {
	Type        string // BlockImage, ...
	MIMEType    string // "" if nobody said
	Name        string // such as a file's, or ""
	Title       string
	Description string
	URI         string
	Attachment  string // the ID of its bytes; "" of a link
	Size        int64  // in bytes; of a link what was said of it, 0 if nothing was
	Binary      bool   // of a resource: it came as bytes rather than as text
	Annotations json.RawMessage
	Meta        json.RawMessage
}

// Types of blocks, as the Agent Client Protocol calls them.
const (
	BlockImage        = "image"
	BlockAudio        = "audio"
	BlockResource     = "resource"      // a file's text or bytes
	BlockResourceLink = "resource_link" // where such a thing can be had
)

// Content is a block with its bytes, which are nil for a link.
type Content struct {
	Block
	Data []byte
}

// An Attachment is the bytes of blocks, kept once however often they were said.
type Attachment struct {
	ID       string // the SHA-256 of Data, in hexadecimal
	MIMEType string // as it was said first, or ""
	Data     []byte
}

// AttachmentID is the ID of bytes.
func AttachmentID(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Attached is the bytes of a block that has some.
func (c Content) Attached() Attachment {
	return Attachment{ID: c.Attachment, MIMEType: c.MIMEType, Data: c.Data}
}

// AttachmentInfo is an attachment without its bytes.
type AttachmentInfo struct {
	ID       string
	MIMEType string
	Size     int64 // in bytes
}

// same reports whether two blocks say the same.
func (b Block) same(other Block) bool {
	return bytes.Equal(b.Annotations, other.Annotations) && bytes.Equal(b.Meta, other.Meta) && b.MIMEType == other.MIMEType && b.Type == other.Type && b.Name == other.Name && b.Title == other.Title &&
		b.Description == other.Description && b.URI == other.URI && b.Attachment == other.Attachment && b.Size == other.Size && b.Binary == other.Binary
}

// BlocksOf are blocks without their bytes, nil of nil.
func BlocksOf(list []Content) []Block {
	if list == nil {
		return nil
	}
	blocks := make([]Block, len(list))
	for i, c := range list {
		blocks[i] = c.Block
	}
	return blocks
}

// SizeOfBlocks is about how many bytes the texts of blocks are.
func SizeOfBlocks(blocks []Block) (n int) {
	for _, b := range blocks {
		n += fieldsSize + len(b.MIMEType) + len(b.Name) + len(b.Title) + len(b.Description) + len(b.URI) + len(b.Annotations) + len(b.Meta)
	}
	return n
}
