package frame

import "io"

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
// cannot become a header any more.
func (s *lspSplitter) notWhole(h header, have int) error {
	switch h.verdict {
	case headerGarbage:
		s.drop(h.size)
		s.enter(resyncing)
		return refuse(ReasonLengthMismatch, "expected a header, found other bytes; does Content-Length count the bytes of the body?")
	case headerTooLarge:
		s.enter(longHeader)
		return refuse(ReasonHeaderTooLarge, "the header section is longer than the limit of %d bytes", s.in.limits.MaxHeader)
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

// skip goes past a refused body of n bytes. The frame's clock goes on.
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
