package redact

import "strings"

// A Stream takes secrets out of a text that comes in pieces, which borders cut
// into messages, say. A secret may lie across any number of pieces and borders:
// what comes behind a border is known as the rest of one, and what is before it is
// taken out as well once it is so long that it would give the secret away; see
// [Secrets.Piece]. The zero value has no secrets. It is used by one goroutine at a
// time.
type Stream struct {
	Secrets *Secrets

	before string // the end of what is before the last border: a secret begins with it
	held   string // what is not shown yet, and goes on so
}

// Add is what can be shown when a piece has come.
func (s *Stream) Add(piece string) (shown string) {
	k := s.Secrets.all()
	if k == nil {
		return piece
	}
	text, border := s.before+s.held+piece, len(s.before)
	s.before, s.held = "", ""
	var b strings.Builder
	done := border // how much of text was shown, is in b or replaced there
	for i := 0; i < len(text); {
		if !k.begins[text[i]] {
			i++
			continue
		}
		n, open := k.match(text[i:], false)
		switch {
		case open:
			b.WriteString(text[done:max(i, done)])
			if i < border {
				s.before = text[i:border]
			}
			s.held = text[max(i, border):]
			return b.String()
		case n == 0:
			i++
		default:
			b.WriteString(text[done:max(i, done)])
			b.WriteString(Mark)
			i += n
			done = i
		}
	}
	b.WriteString(text[done:])
	return b.String()
}

// Holds reports whether something is not shown yet. It is shorter than the longest
// secret.
func (s *Stream) Holds() bool { return s.held != "" }

// Border is what is left to be shown before a border.
func (s *Stream) Border() (shown string) {
	if s.held == "" {
		return ""
	}
	shown = s.held
	s.before, s.held = s.before+s.held, ""
	for _, secret := range s.Secrets.all().list {
		if strings.HasPrefix(secret, s.before) && len(s.before) >= telling(secret) {
			return Mark
		}
	}
	return s.Secrets.Text(shown)
}
