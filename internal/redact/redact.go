// Package redact removes secrets from text for display and storage.
package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// Mark replaces a secret.
	Mark = "[secret]"
	// Shortest is the length in bytes of the shortest secret: a shorter one would match
	// unrelated text.
	Shortest = 8
)

// Secrets are texts that must not be shown. The zero value and nil have none. Its methods may be
// called from any goroutine.
type Secrets struct {
	adding sync.Mutex
	known  atomic.Pointer[known]
}

type known struct {
	list   []string  // the longest first: one may be a prefix of another
	begins [256]bool // by the first byte
}

// Add makes text a secret, unless it is too short.
func (s *Secrets) Add(text string) {
	if len(text) < Shortest {
		return
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	var next known
	if now := s.known.Load(); now != nil {
		next = known{slices.Clone(now.list), now.begins}
	}
	if slices.Contains(next.list, text) {
		return
	}
	next.list = append(next.list, text)
	slices.SortStableFunc(next.list, func(a, b string) int { return len(b) - len(a) })
	next.begins[text[0]] = true
	s.known.Store(&next)
}

// None reports whether there are no secrets.
func (s *Secrets) None() bool { return s.all() == nil }

// all returns the current secrets; nil: none.
func (s *Secrets) all() *known {
	if s == nil {
		return nil
	}
	return s.known.Load()
}

// Text returns text with a Mark for every secret in it.
func (s *Secrets) Text(text string) string {
	k := s.all()
	if k == nil {
		return text
	}
	var b strings.Builder
	done := 0 // how much of text is in b, or replaced there
	for i := 0; i < len(text); {
		n := 0
		if k.begins[text[i]] {
			n, _ = k.match(text[i:], true)
		}
		if n == 0 {
			i++
			continue
		}
		b.WriteString(text[done:i])
		b.WriteString(Mark)
		i += n
		done = i
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// match returns the length of the secret with which text begins, or 0. It is open while text is
// the beginning of a longer one, and more may come.
func (k *known) match(text string, whole bool) (n int, open bool) {
	for _, secret := range k.list {
		switch {
		case strings.HasPrefix(text, secret):
			return len(secret), false
		case !whole && strings.HasPrefix(secret, text):
			return 0, true
		}
	}
	return 0, false
}

// JSON returns a JSON value with a Mark for every secret in its strings, however they are spelt,
// and for pieces of one; see Piece. The value may share memory with raw.
func (s *Secrets) JSON(raw []byte) []byte {
	if s.None() {
		return raw
	}
	var b bytes.Buffer
	done := 0
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			continue
		}
		end := stringEnd(raw, i)
		if end < 0 {
			break // it is no JSON
		}
		if shown, changed := s.quoted(raw[i:end]); changed {
			b.Write(raw[done:i])
			b.Write(shown)
			done = end
		}
		i = end - 1
	}
	if done == 0 {
		return raw
	}
	b.Write(raw[done:])
	return b.Bytes()
}

// stringEnd returns the index after the string that begins at i, or -1.
func stringEnd(raw []byte, i int) int {
	for j := i + 1; j < len(raw); j++ {
		switch raw[j] {
		case '\\':
			j++
		case '"':
			return j + 1
		}
	}
	return -1
}

// quoted returns a JSON string without secrets, and whether it had any.
func (s *Secrets) quoted(raw []byte) (shown []byte, changed bool) {
	text := string(raw[1 : len(raw)-1])
	if bytes.IndexByte(raw, '\\') >= 0 && json.Unmarshal(raw, &text) != nil {
		return raw, false
	}
	clean := s.Piece(text)
	if clean == text {
		return raw, false
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(clean); err != nil {
		return raw, false
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), true
}

// revealingLength is how many bytes of a secret are too many to show: a quarter, and no less than
// Shortest. Keys begin with a public prefix.
func revealingLength(secret string) int { return max(Shortest, len(secret)/4) }

// Piece is Text for one of several texts among which a secret may be divided. It also removes an
// end that begins a secret, and a beginning that ends one, if it is at least a quarter of the
// secret, and Shortest.
func (s *Secrets) Piece(text string) string {
	k := s.all()
	if k == nil {
		return text
	}
	text = s.Text(text)
	for _, secret := range k.list {
		for n := min(len(secret)-1, len(text)); n >= revealingLength(secret); n-- {
			if strings.HasPrefix(text, secret[len(secret)-n:]) {
				text = Mark + text[n:]
				break
			}
		}
		for n := min(len(secret)-1, len(text)); n >= revealingLength(secret); n-- {
			if strings.HasSuffix(text, secret[:n]) {
				text = text[:len(text)-n] + Mark
				break
			}
		}
	}
	return text
}
