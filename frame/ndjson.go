package frame

import (
	"bytes"
	"io"

	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// A lineSplitter finds the bodies of an NDJSON stream.
type lineSplitter struct {
	refused bool // inside a refused line
}

// NotJSON changes nothing: the next line is another message.
func (*lineSplitter) NotJSON() {}

// Next takes one line that is not blank. It drops a refused line to its end.
func (s *lineSplitter) Next(in *Input) ([]byte, error) {
	searched := 0 // bytes of unread input known to have no newline
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
			case len(line) > in.limits.MaxFrame: // also white space, as if it had arrived in pieces
				return nil, oversizeLine(in.limits.MaxFrame)
			case rawjson.SkipSpace(line, 0) == len(line):
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
		begun := !s.refused && rawjson.SkipSpace(b, 0) < len(b)
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

// refuse drops a line, which may not have ended yet.
func (s *lineSplitter) refuse(in *Input) {
	in.Discard(len(in.Bytes()))
	in.EndFrame()
	s.refused = true
}

func oversizeLine(limit int) *Refusal {
	return refuse(ReasonOversize, "the line is longer than the limit of %d bytes", limit)
}
