package frame

import (
	"bytes"
	"io"
)

// next takes one line that is not blank. A line that is refused is dropped to
// its end.
func (ndjsonFraming) next(r *Reader) ([]byte, error) {
	searched := 0 // bytes of unread that are known to have no newline
	for {
		b := r.unread()
		if newline := bytes.IndexByte(b[searched:], '\n'); newline >= 0 {
			newline += searched
			searched = 0
			wasRefused := r.state == skippingLine
			line := bytes.TrimSuffix(b[:newline], []byte("\r"))
			r.drop(newline + 1)
			r.enter(atFrame)
			switch {
			case wasRefused:
				continue
			case len(line) > r.limits.MaxFrame: // white space too, as if it had come in pieces
				return nil, r.oversizeLine(line)
			case skipSpace(line, 0) == len(line):
				continue
			}
			return line, nil
		}
		searched = len(b)
		switch {
		case r.state == skippingLine:
			r.drop(len(b))
			searched = 0
		case len(bytes.TrimSuffix(b, []byte("\r"))) > r.limits.MaxFrame:
			r.drop(len(b))
			r.enter(skippingLine)
			return nil, r.oversizeLine(b)
		}
		waits := betweenFrames
		if r.state == atFrame && skipSpace(b, 0) < len(b) {
			waits = inFrame
		}
		switch err := r.more(waits, searched+1); {
		case err == nil:
		case err == ErrTimeout:
			r.timedOut(skippingLine)
			return nil, err
		case err == io.EOF && waits == inFrame: // the last line needs no newline
			b = r.unread()
			r.drop(len(b))
			r.frameDone()
			return b, nil
		default:
			return nil, err
		}
	}
}
