package redact

import "strings"

// A Stream removes secrets from a text that comes in pieces, which borders divide, for example
// into messages. A secret may span any number of pieces and borders. After a border the stream
// recognises the rest of a secret. Before one it also removes a beginning that is long enough to
// reveal the secret; see [Secrets.Piece]. The zero value has no secrets. One goroutine at a time
// may use it.
type Stream struct {
	Secrets *Secrets

	before string // the end of the text before the last border: a secret begins with it
	held   string // not shown yet: the possible beginning of a secret
}

// Add returns the text that can be shown after a piece has come.
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

// Holds reports whether some text is not shown yet. It is shorter than the longest secret.
func (s *Stream) Holds() bool { return s.held != "" }

// Border returns the rest of the text before a border.
func (s *Stream) Border() (shown string) {
	if s.held == "" {
		return ""
	}
	shown = s.held
	s.before, s.held = s.before+s.held, ""
	for _, secret := range s.Secrets.all().list {
		if strings.HasPrefix(secret, s.before) && len(s.before) >= revealingLength(secret) {
			return Mark
		}
	}
	return s.Secrets.Text(shown)
}
