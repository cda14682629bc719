package visible

import (
	"strings"
	"unicode"
)

// mostMarks is how many combining marks one letter may carry: languages need no more than four,
// and a pile of them covers the lines above and below.
const mostMarks = 6

// blank are characters without a glyph that are not spaces, in addition to those that Unicode
// marks as ignorable.
var blank = map[rune]bool{
	0x2800:  true, // braille pattern blank
	0x16fe4: true, // Khitan small script filler
	0x1d159: true, // musical symbol null notehead
}

// joining are scripts that use joiners and non-joiners.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Nko, unicode.Mongolian, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati,
	unicode.Oriya,
	unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Tibetan,
}

const (
	zeroWidthNonJoiner = 0x200c
	zeroWidthJoiner    = 0x200d
	textSelector       = 0xfe0e
	emojiSelector      = 0xfe0f

	keycaps = "0123456789#*" // which a selector turns into an emoji
)

// depends reports whether the display of this character depends on the next one.
func depends(r rune) bool {
	return r == '\r' || r == zeroWidthJoiner || r == zeroWidthNonJoiner
}

// shown reports whether a character is written as it is.
func (w *writer) shown(r, after rune) bool {
	switch {
	case r == '\n', r == '\t', r == ' ':
		return true
	case r < ' ':
		return false
	case r < 0x7f:
		return true
	case !w.exact && (r == zeroWidthJoiner || r == zeroWidthNonJoiner):
		return r == zeroWidthJoiner && pictured(w.base) && pictured(after) && joinable(w.before) || bothJoin(w.before, after)
	case !w.exact && (r == emojiSelector || r == textSelector):
		return w.before == w.base && (pictured(w.base) || strings.ContainsRune(keycaps, w.base))
	case hidden(r):
		return false
	case unicode.Is(unicode.Zs, r):
		return !w.exact // otherwise a shell's space could be confused with it
	case unicode.In(r, unicode.Mn, unicode.Me):
		return w.base != none && w.base != ' ' && w.piled < mostMarks
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S) || unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// hidden reports whether a character is invisible, although Unicode counts it among letters,
// marks and symbols.
func hidden(r rune) bool {
	return blank[r] || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// pictured reports whether a character may be part of an emoji.
func pictured(r rune) bool {
	return unicode.In(r, unicode.So, unicode.Sk, unicode.Sm) && r >= 0xa9 || r == 0x203c || r == 0x2049 || r == 0x3030 || r == 0x303d
}

// joinable reports whether a joiner may follow.
func joinable(r rune) bool { return pictured(r) || r == emojiSelector }

// bothJoin reports whether two characters belong to scripts that use joiners.
func bothJoin(before, after rune) bool {
	return unicode.In(before, joining...) && unicode.In(after, joining...)
}

// passed records a written character.
func (w *writer) passed(r rune) {
	switch {
	case r == '\n' || r < 0:
		w.before, w.base, w.piled = none, none, 0
		return
	case unicode.In(r, unicode.Mn, unicode.Me) && !unicode.Is(unicode.Variation_Selector, r):
		w.piled++
	case r == zeroWidthJoiner, r == zeroWidthNonJoiner, unicode.Is(unicode.Variation_Selector, r):
	case pictured(r), unicode.IsPrint(r):
		w.base, w.piled = r, 0
	default:
		w.base, w.piled = none, 0
	}
	w.before = r
}
