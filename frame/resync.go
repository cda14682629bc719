package frame

import "bytes"

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
