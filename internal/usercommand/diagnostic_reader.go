package usercommand

import (
	"bytes"
	"context"
	"strings"
)

// longest limits the buffered part of a line, and roughly each piece passed on, in bytes.
const longest = 8 << 10

// Reader passes on a command's output in whole lines and finds its diagnostics. It is for one
// goroutine at a time.
type Reader struct {
	Parser *parser
	Text   func(context.Context, string) // gets whole lines, the last one possibly without its end; may be nil
	Found  func(context.Context, diagnostic)

	kept []byte // the beginning of a line
}

// Take reads a piece of output.
func (r *Reader) Take(ctx context.Context, p []byte) {
	r.kept = append(r.kept, p...)
	end := bytes.LastIndexByte(r.kept, '\n') + 1
	if end == 0 && len(r.kept) > longest {
		end = len(r.kept)
	}
	r.pass(ctx, r.kept[:end])
	r.kept = append(r.kept[:0], r.kept[end:]...)
}

// Flush passes on an unfinished last line.
func (r *Reader) Flush(ctx context.Context) {
	r.pass(ctx, r.kept)
	r.kept = nil
}

func (r *Reader) pass(ctx context.Context, p []byte) {
	text := strings.ToValidUTF8(string(p), "\uFFFD")
	if r.Text != nil {
		r.passText(ctx, text)
	}
	for line := range strings.Lines(text) {
		for _, d := range r.Parser.Line(line) {
			r.Found(ctx, d)
		}
	}
}

func (r *Reader) passText(ctx context.Context, text string) {
	var piece strings.Builder
	for line := range strings.Lines(text) {
		if piece.Len()+len(line) > longest && piece.Len() > 0 {
			r.Text(ctx, piece.String())
			piece.Reset()
		}
		piece.WriteString(line)
	}
	if piece.Len() > 0 {
		r.Text(ctx, piece.String())
	}
}
