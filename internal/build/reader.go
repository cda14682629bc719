package build

import (
	"bytes"
	"context"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/diagnostic"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// longest is how much of a line is waited for, in bytes, and about how much is passed on at
// once.
const longest = 8 << 10

// A reader passes on what a command prints in whole lines, and finds the diagnostics in it.
type reader struct {
	parser *diagnostic.Parser
	text   func(context.Context, string)
	found  func(context.Context, domain.Diagnostic)

	kept []byte // the beginning of a line
}

// take takes what was printed.
func (r *reader) take(ctx context.Context, p []byte) {
	r.kept = append(r.kept, p...)
	end := bytes.LastIndexByte(r.kept, '\n') + 1
	if end == 0 && len(r.kept) > longest {
		end = len(r.kept)
	}
	r.pass(ctx, r.kept[:end])
	r.kept = append(r.kept[:0], r.kept[end:]...)
}

// flush passes on what has no end of a line.
func (r *reader) flush(ctx context.Context) {
	r.pass(ctx, r.kept)
	r.kept = nil
}

func (r *reader) pass(ctx context.Context, p []byte) {
	text := strings.ToValidUTF8(string(p), "\uFFFD")
	var piece strings.Builder
	for line := range strings.Lines(text) {
		if piece.Len()+len(line) > longest && piece.Len() > 0 {
			r.text(ctx, piece.String())
			piece.Reset()
		}
		piece.WriteString(line)
	}
	if piece.Len() > 0 {
		r.text(ctx, piece.String())
	}
	for line := range strings.Lines(text) {
		for _, d := range r.parser.Line(line) {
			r.found(ctx, d)
		}
	}
}
