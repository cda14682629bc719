package frame

import (
	"bytes"
	"io"
)

// A lineSplitter finds the bodies of a stream of NDJSON.
type lineSplitter struct {
	refused bool // inside a line that was refused
}

// NotJSON changes nothing: the next line is another message.
func (*lineSplitter) NotJSON() {}

// Next takes one line that is not blank. A line that is refused is dropped to
// its end.
func (s *lineSplitter) Next(in *Input) ([]byte, error) {
	searched := 0 // bytes of unread that are known to have no newline
	for {
		b := in.Bytes()
		if newline := bytes.IndexByte(b[searched:], '\n'); newline >= 0 {
			newline += searched
			searched = 0
			wasRefused := s.refused
			line := bytes.TrimSuffix(b[:newline], []byte("\r"))
			in.Discard(newline + 1)
			in.EndFrame()
			s.refused = false
			switch {
			case wasRefused:
				continue
			case len(line) > in.limits.MaxFrame: // white space too, as if it had come in pieces
				return nil, oversizeLine(in.limits.MaxFrame)
			case skipSpace(line, 0) == len(line):
				continue
			}
			return line, nil
		}
		searched = len(b)
		switch {
		case s.refused:
			in.Discard(len(b))
			searched = 0
		case len(bytes.TrimSuffix(b, []byte("\r"))) > in.limits.MaxFrame:
			s.refuse(in)
			return nil, oversizeLine(in.limits.MaxFrame)
		}
		begun := !s.refused && skipSpace(b, 0) < len(b)
		switch err := in.Fill(searched+1, begun); {
		case err == nil:
		case err == ErrTimeout:
			s.refuse(in)
			return nil, err
		case err == io.EOF && begun: // the last line needs no newline
			b = in.Bytes()
			in.Discard(len(b))
			in.EndFrame()
			return b, nil
		default:
			return nil, err
		}
	}
}

// refuse drops a line, of which there may be more to come.
func (s *lineSplitter) refuse(in *Input) {
	in.Discard(len(in.Bytes()))
	in.EndFrame()
	s.refused = true
}

func oversizeLine(limit int) *Refusal {
	return refuse(ReasonOversize, "the line is longer than the limit of %d bytes", limit)
}
