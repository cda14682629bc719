package toolinput

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"io"
	"slices"
	"strings"
)

// Fingerprint returns the fingerprint of an input. Two inputs have the same one if they differ only in
// white space, the order of members and the spelling of texts. Repeated members, the digits of
// numbers and halves of surrogate pairs all count. Invalid JSON equals only itself.
func Fingerprint(raw []byte) string {
	h := sha256.New()
	if valid(raw) {
		s := string(raw)
		printer{s}.value(h, afterSpace(s, 0))
	} else {
		io.WriteString(h, "?")
		h.Write(raw)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Same reports whether two inputs have the same fingerprint.
func Same(a, b []byte) bool { return Fingerprint(a) == Fingerprint(b) }

// A printer writes values so that the bytes of one are never a prefix of another's: each has a
// letter, and then its length or its end.
type printer struct{ s string }

func (p printer) value(w hash.Hash, i int) (end int) {
	switch c := p.s[i]; c {
	case '{':
		return p.object(w, i)
	case '[':
		io.WriteString(w, "[")
		end = eachElement(p.s, i, func(at int) int { return p.value(w, at) })
		io.WriteString(w, "]")
		return end
	case '"':
		end = afterString(p.s, i)
		text, _ := decodeString(p.s[i:end])
		writeText(w, 's', text)
		return end
	}
	end = afterScalar(p.s, i)
	writeText(w, 'n', p.s[i:end])
	return end
}

// object writes the members by name. Members that some program treats as equal keep their order:
// the first or the last counts.
func (p printer) object(w hash.Hash, i int) (end int) {
	type member struct {
		name string
		key  string
		sum  [sha256.Size]byte
	}
	var all []member
	end = members(p.s, i, func(name string, at int) int {
		h := sha256.New()
		next := p.value(h, at)
		m := member{name: name, key: folded(name)}
		h.Sum(m.sum[:0])
		all = append(all, m)
		return next
	})
	slices.SortStableFunc(all, func(a, b member) int { return strings.Compare(a.key, b.key) })
	io.WriteString(w, "{")
	for _, m := range all {
		writeText(w, 's', m.name)
		w.Write(m.sum[:])
	}
	io.WriteString(w, "}")
	return end
}

func writeText(w io.Writer, kind byte, text string) {
	head := binary.AppendUvarint([]byte{kind}, uint64(len(text)))
	w.Write(head)
	io.WriteString(w, text)
}
