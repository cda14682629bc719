package frame

import (
	"bytes"
	"io"

	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// Next takes one body. It makes progress on any input: each pass of the loop uses bytes up,
// changes the state or reads.
func (s *lspSplitter) Next(in *Input) ([]byte, error) {
	if s.state == atFrame { // the common case
		s.in = in
		return s.readFrame()
	}
	s.in = in
	for {
		var err error
		switch s.state {
		case skippingBody:
			err = s.skipBody()
		case longHeader:
			err = s.skipLongHeader()
		case resyncing:
			err = s.findHeader()
		default:
			return s.readFrame()
		}
		if err != nil {
			return nil, err
		}
	}
}

// readFrame reads the frame that begins at the current position.
func (s *lspSplitter) readFrame() ([]byte, error) {
	for {
		b := s.in.Bytes()
		size, length := plainHeader(b)
		if size == 0 || size > s.in.limits.MaxHeader || length > s.in.limits.MaxFrame {
			n, partial := leadingBlankLines(b)
			if s.drop(n); partial {
				if err := s.in.Fill(1, false); err != nil {
					return nil, err
				}
				continue
			}
			b = b[n:]
			h := parseHeader(b, s.in.limits.MaxHeader, s.fields)
			if h.verdict != headerWhole {
				s.fields = h.size
				if err := s.notWhole(h, len(b)); err != nil {
					return nil, err
				}
				continue
			}
			refusal := h.refusal(s.in.limits.MaxFrame)
			if refusal != nil && refusal.Reason != ReasonUnsupportedContentType {
				return nil, s.refuseHeader(h, refusal)
			}
			if refusal != nil && len(b) >= h.size+int(h.length) {
				refusal.ID = requestID(b[h.size : h.size+int(h.length)])
				s.drop(h.size + int(h.length))
				s.in.EndFrame()
				return nil, refusal
			}
			size, length = h.size, int(h.length)
		}
		if whole := size + length; len(b) >= whole {
			s.drop(whole)
			s.in.EndFrame()
			return b[size:whole:whole], nil
		}
		if err := s.moreOfFrame(size + length); err != nil {
			return nil, err
		}
	}
}

// notWhole handles a header section that has not ended: it reads on, or refuses bytes that
// cannot become a header.
func (s *lspSplitter) notWhole(h header, have int) error {
	switch h.verdict {
	case headerGarbage:
		s.drop(h.size)
		s.enter(resyncing)
		return refuse(ReasonLengthMismatch,
			"expected a header, found other bytes; does Content-Length count the bytes of the body?")
	case headerTooLarge:
		s.enter(longHeader)
		return refuse(ReasonHeaderTooLarge, "the header section is longer than the limit of %d bytes",
			s.in.limits.MaxHeader)
	}
	return s.moreOfFrame(have + 1)
}

// refuseHeader moves to the position where reading continues after a header that is whole and
// wrong.
func (s *lspSplitter) refuseHeader(h header, refusal *Refusal) error {
	if refusal.Reason == ReasonLengthMismatch {
		s.drop(embeddedHeader(h.section))
		s.enter(atFrame)
		return refusal
	}
	s.drop(h.size)
	switch refusal.Reason {
	case ReasonOversize, ReasonBadCharset:
		s.skip(h.length)
	default:
		s.enter(resyncing)
	}
	return refusal
}

// moreOfFrame reads on in the middle of a frame that has need bytes.
func (s *lspSplitter) moreOfFrame(need int) error {
	err := s.in.Fill(need, true)
	switch err {
	case ErrTimeout:
		s.timedOut()
	case io.EOF:
		s.dropAll()
		s.in.EndFrame()
		return refuse(ReasonLengthMismatch, "the input ended inside a frame")
	}
	return err
}

// skip goes past a refused body of n bytes. The frame's clock keeps running.
func (s *lspSplitter) skip(n int64) {
	if n <= s.maxSkip {
		s.state, s.skipLeft = skippingBody, n
		return
	}
	s.enter(resyncing)
}

// skipBody uses the rest of a refused body up without keeping it.
func (s *lspSplitter) skipBody() error {
	for {
		n := min(int64(len(s.in.Bytes())), s.skipLeft)
		s.drop(int(n))
		s.skipLeft -= n
		if s.skipLeft == 0 {
			s.enter(atFrame)
			return nil
		}
		if err := s.in.Fill(1, true); err != nil {
			if err == ErrTimeout {
				s.timedOut()
			}
			return err
		}
	}
}

// requestID is the raw id of the request in body, or nil if body is not a
// request whose id can be read.
func requestID(body []byte) []byte {
	var m Message
	if !Parse(body, &m) || m.Kind != Object || m.Method == nil || !ValidID(m.ID) {
		return nil
	}
	return m.ID
}

// An lspSplitter finds the bodies of a stream of LSP framing.
type lspSplitter struct {
	in *Input // of the call of Next under way

	state    state
	fields   int       // atFrame, longHeader: how much of the unread bytes is known to be whole header lines
	skipLeft int64     // skippingBody: what is left of it
	maxSkip  int64     // a constant but in tests
	line     lineState // longHeader, resyncing: the line that the unread bytes are in
}

// state is the position of a splitter in the stream.
type state uint8

const (
	atFrame      state = iota // at the beginning of a frame or a blank line
	skippingBody              // inside a refused body
	longHeader                // inside a header section that was refused as too large
	resyncing                 // looking for the next header
)

// lineState is what a splitter remembers of the current line after it dropped the beginning of
// that line.
type lineState struct {
	cut      bool // the beginning was dropped
	hadColon bool // the dropped part had a colon
}

// drop uses n bytes up.
func (s *lspSplitter) drop(n int) {
	s.in.Discard(n)
	if s.fields > 0 {
		s.fields = max(0, s.fields-n)
	}
}

// dropAll uses up all unread bytes.
func (s *lspSplitter) dropAll() { s.drop(len(s.in.Bytes())) }

// enter changes to a state that assumes the beginning of a line.
func (s *lspSplitter) enter(next state) {
	s.state = next
	s.line = lineState{}
	s.in.EndFrame()
}

// timedOut drops the received part of a frame that took too long.
func (s *lspSplitter) timedOut() {
	s.dropAll()
	s.enter(resyncing)
}

// NotJSON looks for a header: the body may have been wrong, or its length.
func (s *lspSplitter) NotJSON() { s.enter(resyncing) }

// maxMark is the longest text, with its blanks and line end, that counts as the beginning of a
// header in the middle of garbage.
const maxMark = 64

// match reports whether a header begins at a position.
type match uint8

const (
	noMatch    match = iota
	maybeMatch       // not decided: the bytes end too early
	isMatch
)

// matchLength looks for "Content-Length: digits line-end" around the colon at
// b[colon] and returns where it begins.
func matchLength(b []byte, colon int) (start int, m match) {
	start, ok := nameBefore(b, colon, "content-length")
	if !ok {
		return 0, noMatch
	}
	i := skipBlanks(b, colon+1)
	digits := i
	i = rawjson.SkipDigits(b, i)
	if i < len(b) && i == digits {
		return 0, noMatch
	}
	i = skipBlanks(b, i)
	if i < len(b) && b[i] == '\r' {
		i++
	}
	switch {
	case i-start >= maxMark || i < len(b) && b[i] != '\n':
		return 0, noMatch
	case i == len(b):
		return start, maybeMatch
	}
	return start, isMatch
}

// nameBefore reports where the header name that ends before colon begins.
func nameBefore(b []byte, colon int, lower string) (start int, ok bool) {
	end := colon
	for end > 0 && colon-end < 16 && (b[end-1] == ' ' || b[end-1] == '\t') {
		end--
	}
	start = end - len(lower)
	return start, start >= 0 && bytes.EqualFold(b[start:end], []byte(lower))
}

func skipBlanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	return i
}

// embeddedHeader returns the position of a Content-Length in the middle of a line, in a whole
// header section that has no other: another program printed text in front of it. It returns 0 if
// there is none.
func embeddedHeader(section []byte) int {
	for i, c := range section {
		if c == ':' {
			if start, m := matchLength(section, i); m == isMatch {
				return start
			}
		}
	}
	return 0
}

// Resynchronisation: after a frame that leaves the position in doubt, the splitter skips to the
// next possible header. That is a "Content-Length:" with digits and a line end, at any position
// (clients put no newline after a body), or a "Content-Type:" at the beginning of a line.

// findHeader drops bytes up to the next header.
func (s *lspSplitter) findHeader() error {
	for {
		b := s.in.Bytes()
		keep := max(0, len(b)-maxMark) // a header may begin in the last bytes
		for i := 0; ; i++ {
			colon := bytes.IndexByte(b[i:], ':')
			if colon < 0 {
				break
			}
			i += colon
			start, m := matchLength(b, i)
			if m == noMatch {
				var ok bool
				if start, ok = nameBefore(b, i, "content-type"); ok && s.lineBegins(b, start) {
					m = isMatch
				}
			}
			if m == isMatch {
				s.drop(start)
				s.enter(atFrame)
				return nil
			}
			if m == maybeMatch {
				keep = min(keep, start)
				break
			}
		}
		if keep > 0 {
			s.line.cut = b[keep-1] != '\n'
			s.drop(keep)
		}
		if err := s.in.Fill(maxMark+1, false); err != nil {
			return err
		}
	}
}

// lineBegins reports whether a line begins at b[i], where b is unread.
func (s *lspSplitter) lineBegins(b []byte, i int) bool {
	if i == 0 {
		return !s.line.cut
	}
	return b[i-1] == '\n'
}

// skipLongHeader drops the rest of a header section that is too large. It drops the section's
// own Content-Length, at the beginning of a line, too. A Content-Length in the middle of a line,
// or a line that is not a header, shows that this was garbage with a frame behind it.
func (s *lspSplitter) skipLongHeader() error {
	for {
		b := s.in.Bytes()
		newline := bytes.IndexByte(b, '\n')
		line := b
		if newline >= 0 {
			line = b[:newline+1]
		}
		for i, c := range line {
			if c != ':' {
				continue
			}
			s.line.hadColon = true
			if start, m := matchLength(line, i); m == isMatch && !s.lineBegins(line, start) {
				s.drop(start)
				s.enter(atFrame)
				return nil
			}
		}
		if newline < 0 {
			if drop := len(line) - maxMark; drop > 0 {
				s.drop(drop)
				s.line.cut = true
			}
			if err := s.in.Fill(maxMark+1, false); err != nil {
				return err
			}
			continue
		}
		isEnd := !s.line.cut && len(bytes.TrimRight(line, "\r\n")) == 0
		isField := s.line.hadColon
		s.drop(len(line))
		s.line = lineState{}
		if isEnd || !isField {
			s.enter(resyncing)
			return nil
		}
	}
}
