package content

import (
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A PromptError says which block of a prompt is wrong.
type PromptError struct {
	Index int // from 0; -1: all of them together are
	Error
}

// ReadPrompt reads the blocks that go with a prompt. texts are those that are
// text, which belong to the prompt's own.
func ReadPrompt(blocks []catalog.ContentBlock) (list []domain.Content, texts string, wrong *PromptError) {
	if len(blocks) > MaxBlocks {
		return nil, "", &PromptError{-1, Error{Expected: fmt.Sprintf("at most %d blocks", MaxBlocks), Received: fmt.Sprint(len(blocks))}}
	}
	var said []string
	var size int64
	for i, b := range blocks {
		if b.Type == "text" {
			said = append(said, b.Text)
			continue
		}
		c, err := Read(b)
		if err != nil {
			return nil, "", &PromptError{i, *err.(*Error)}
		}
		if size += int64(len(c.Data)); size > MaxPrompt {
			return nil, "", &PromptError{-1, Error{Expected: fmt.Sprintf("at most %d bytes in all blocks together", MaxPrompt), Received: "more"}}
		}
		list = append(list, c)
	}
	return list, strings.Join(said, "\n\n"), nil
}

// Label stands for a block where only text can be shown, such as
// [image image/png 12 KB].
func Label(b domain.Block) string {
	parts := []string{strings.ReplaceAll(b.Type, "_", " ")}
	for _, part := range []string{b.Name, b.MIMEType} {
		if part != "" {
			parts = append(parts, strings.Map(printable, part))
		}
	}
	if b.Size > 0 {
		parts = append(parts, Size(b.Size))
	}
	if b.Type == domain.BlockResourceLink {
		parts = append(parts, strings.Map(printable, b.URI))
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// Labels are those of blocks, a line each.
func Labels(blocks []domain.Block) string {
	lines := make([]string, len(blocks))
	for i, b := range blocks {
		lines[i] = Label(b)
	}
	return strings.Join(lines, "\n")
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}

// Size is so many bytes for people, such as 12 KB.
func Size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000*1000:
		return fmt.Sprintf("%d KB", (n+500)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
