package rowjson

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A Block is a piece of content that is no text.
type Block struct {
	Type        string          `json:"type"`
	MIMEType    string          `json:"mime,omitempty"`
	Name        string          `json:"name,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	URI         string          `json:"uri,omitempty"`
	Attachment  string          `json:"attachment,omitempty"`
	Size        int64           `json:"size,omitempty"`
	Binary      bool            `json:"binary,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Meta        json.RawMessage `json:"meta,omitempty"`
}

// BlocksOf are blocks as rows have them, nil of nil.
func BlocksOf(blocks []domain.Block) []Block {
	return converted(blocks, func(b domain.Block) Block { return Block(b) })
}

// Blocks are blocks as the program has them, nil of nil.
func Blocks(rows []Block) []domain.Block {
	return converted(rows, func(b Block) domain.Block { return domain.Block(b) })
}

type messageContent struct {
	Blocks []Block         `json:"blocks,omitempty"`
	Meta   json.RawMessage `json:"_meta,omitempty"`
}
