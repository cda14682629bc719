package frame

import "io"

// next takes one body. Whatever the stream holds, it moves forward: each pass
// of the loop uses bytes up, changes the state or reads.
func (lspFraming) next(r *Reader) ([]byte, error) {
	for {
		var err error
		switch r.state {
		case skippingBody:
			err = r.skipBody()
		case longHeader:
			err = r.skipLongHeader()
		case resyncing:
			err = r.findHeader()
		default:
			return r.readFrame()
		}
		if err != nil {
			return nil, err
		}
	}
}

// readFrame reads the frame that begins at the current position.
func (r *Reader) readFrame() ([]byte, error) {
	for {
		b := r.unread()
		size, length := plainHeader(b)
		if size == 0 || length > r.limits.MaxFrame {
			n, partial := leadingBlankLines(b)
			if r.drop(n); partial {
				if err := r.more(betweenFrames, 1); err != nil {
					return nil, err
				}
				continue
			}
			b = b[n:]
			h := parseHeader(b, r.limits.MaxHeader, r.fields)
			if h.verdict != headerWhole {
				r.fields = h.size
				if err := r.notWhole(h, len(b)); err != nil {
					return nil, err
				}
				continue
			}
			refusal := h.refusal(r.limits.MaxFrame)
			if refusal != nil && refusal.Reason != ReasonUnsupportedContentType {
				return nil, r.refuseHeader(h, refusal)
			}
			if refusal != nil && len(b) >= h.size+int(h.length) {
				refusal.ID = requestID(b[h.size : h.size+int(h.length)])
				r.drop(h.size + int(h.length))
				r.frameDone()
				return nil, refusal
			}
			size, length = h.size, int(h.length)
		}
		if whole := size + length; len(b) >= whole {
			r.drop(whole)
			r.frameDone()
			return b[size:whole:whole], nil
		}
		if err := r.moreOfFrame(size + length); err != nil {
			return nil, err
		}
	}
}

// notWhole deals with a header section that has not ended: it reads on, or
// refuses what cannot become a header any more.
func (r *Reader) notWhole(h header, have int) error {
	switch h.verdict {
	case headerGarbage:
		r.drop(h.size)
		r.enter(resyncing)
		return refuse(ReasonLengthMismatch, "expected a header, found other bytes; does Content-Length count the bytes of the body?")
	case headerTooLarge:
		r.enter(longHeader)
		return refuse(ReasonHeaderTooLarge, "the header section is longer than the limit of %d bytes", r.limits.MaxHeader)
	}
	return r.moreOfFrame(have + 1)
}

// refuseHeader goes to where reading continues after a header that is whole
// and wrong.
func (r *Reader) refuseHeader(h header, refusal *Refusal) error {
	if refusal.Reason == ReasonLengthMismatch {
		r.drop(embeddedHeader(h.section))
		r.enter(atFrame)
		return refusal
	}
	r.drop(h.size)
	switch refusal.Reason {
	case ReasonOversize:
		refusal.ID = r.oversizeID(h.length)
		r.skip(h.length)
	case ReasonBadCharset:
		r.skip(h.length)
	default:
		r.enter(resyncing)
	}
	return refusal
}

// moreOfFrame reads on in the middle of a frame that has need bytes.
func (r *Reader) moreOfFrame(need int) error {
	err := r.more(inFrame, need)
	switch err {
	case ErrTimeout:
		r.timedOut(resyncing)
	case io.EOF:
		r.drop(r.end - r.pos)
		r.frameDone()
		return refuse(ReasonLengthMismatch, "the input ended inside a frame")
	}
	return err
}

// skip goes past a refused body of n bytes. The frame's clock goes on.
func (r *Reader) skip(n int64) {
	if n <= r.maxSkip {
		r.state, r.skipLeft = skippingBody, n
		return
	}
	r.enter(resyncing)
}

// skipBody uses the rest of a refused body up without keeping it.
func (r *Reader) skipBody() error {
	for {
		n := min(int64(r.end-r.pos), r.skipLeft)
		r.drop(int(n))
		r.skipLeft -= n
		if r.skipLeft == 0 {
			r.enter(atFrame)
			return nil
		}
		if err := r.more(inFrame, 1); err != nil {
			if err == ErrTimeout {
				r.timedOut(resyncing)
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

// ValidID reports whether raw JSON is an id that JSON-RPC allows: a string, a
// number or null.
func ValidID(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	c := raw[0]
	return c == '"' || c == '-' || c == 'n' || isDigit(c)
}
