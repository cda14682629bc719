package shellcommand

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// AllowedBy reports whether rules with these patterns allow a command: a pattern matches
// everything, or the exact command, or each part matches some pattern. inside reports whether
// the rules hold in a directory: a script may begin by changing to it.
func (c Command) AllowedBy(patterns []Pattern, inside func(dir string) bool) bool {
	for _, p := range patterns {
		if p.isEverything() || !c.IsNothing() && p.text == c.Text || c.original != "" && p.text == c.original {
			return true
		}
	}
	if c.unclear || len(c.readings) == 0 || len(patterns) == 0 {
		return false
	}
	for _, r := range c.readings {
		if !allowed(r.parts, patterns, inside) {
			return false
		}
	}
	return true
}

func allowed(parts []Part, patterns []Pattern, inside func(dir string) bool) bool {
	for _, part := range parts {
		switch {
		case slices.ContainsFunc(patterns, func(p Pattern) bool { return p.allows(part) }):
		case len(part.runs) > 0 && allowed(part.runs, patterns, inside):
		case part.changesTo != "" && len(parts) > 1 && inside != nil && inside(part.changesTo):
		default:
			return false
		}
	}
	return len(parts) > 0
}

// CouldRun reports whether the command, or any part of it in any reading, could match a pattern.
func (c Command) CouldRun(p Pattern) bool {
	if c.IsNothing() {
		return p.isEverything()
	}
	if slices.ContainsFunc(c.denial, func(text string) bool { return p.covers(text, true) }) {
		return true
	}
	for _, text := range c.scanned {
		if scan(text, mostNesting, p.fits) {
			return true
		}
	}
	return false
}

// mostDenial bounds the parsed texts that a deny rule is matched with; the text as a whole is
// searched as well.
const mostDenial = 20_000

// denies records texts that the script could run.
func (r *reader) denies(texts ...string) {
	for _, text := range texts {
		if text != "" && len(r.denial) < mostDenial {
			r.denial = append(r.denial, text)
		}
	}
}

// deniesCall records the commands that a simple command could be.
func (r *reader) deniesCall(c call) {
	r.denies(c.source)
	var set []string
	for _, a := range c.assigns {
		set = append(set, a.bare)
	}
	if len(c.words) == 0 || !isUnknown(c.words[0].text()) {
		r.denies(join(c.words))
		r.denies(strings.Join(slices.Concat(set, []string{join(c.words)}, c.redirections), " "))
	}
	r.deniesWords(c.words, true)
	if len(c.words) == 0 {
		return
	}
	for _, name := range c.words[0].texts {
		base := path.Base(name)
		if slices.Contains(shellNames, base) && !slices.ContainsFunc(c.words[1:], isScriptFlag) {
			r.stdin = r.stdin || len(c.words) == 1
			return // it reads a file, or its input
		}
		if slices.Contains(runners, base) || slices.Contains(shellNames, base) {
			for i := 1; i < len(c.words); i++ {
				r.deniesWords(c.words[i:], false)
				r.mayBeScript(c.words[i])
			}
			r.mayBeScript(word{texts: []string{textOf(c.words[1:])}})
			return
		}
		if base == "echo" || base == "printf" {
			r.mayBePiped(textOf(c.words[1:]))
		}
	}
}

// isScriptFlag reports whether a word may be the option of a shell before a script.
func isScriptFlag(w word) bool {
	return !w.isLiteral || strings.HasPrefix(w.text(), "-") && strings.Contains(w.text(), "c")
}

// deniesWords records words as texts, with each possible value. A completely unknown name could
// be any program, which no rule means.
func (r *reader) deniesWords(words []word, first bool) {
	if len(words) == 0 || len(words) > 100 && !first {
		return
	}
	rest := textOf(words[1:])
	for _, name := range words[0].texts {
		if words[0].expands {
			name = strings.Map(func(c rune) rune {
				if strings.ContainsRune("*?[]", c) {
					return AnyWord
				}
				return c
			}, name)
		}
		if isUnknown(name) {
			continue
		}
		name = strings.TrimPrefix(name, "=")
		for _, n := range []string{name, name[strings.LastIndexByte(name, '/')+1:]} {
			r.denies(strings.TrimSuffix(n+" "+rest, " "))
		}
	}
	for _, w := range words[1:] {
		if len(w.texts) > 1 { // a known value
			for i := range w.texts {
				all := make([]string, len(words))
				for k, other := range words {
					all[k] = other.texts[min(i, len(other.texts)-1)]
				}
				r.denies(strings.Join(all, " "))
			}
			break
		}
	}
}

// isUnknown reports whether a text is completely unknown.
func isUnknown(text string) bool { return strings.Trim(text, string([]rune{Anything, AnyWord})) == "" }

// textOf returns words as a program receives them, joined.
func textOf(words []word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text()
		if w.expands {
			texts[i] = strings.ReplaceAll(strings.ReplaceAll(texts[i], "*", string(AnyWord)), "?", string(AnyWord))
		}
	}
	return strings.Join(texts, " ")
}

// mayBeScript parses a word that may run as a script.
func (r *reader) mayBeScript(w word) {
	for _, text := range w.texts {
		if r.nesting < mostNesting && *r.left > 0 && strings.ContainsAny(text, " \t\n;&|$`<>(){}'\"\\") {
			inner := r.inner(bash)
			r.read(inner, text)
			r.denies(inner.denial...)
		}
	}
}

// mayBePiped stores text that is written to a pipe, which a shell may read.
func (r *reader) mayBePiped(text string) { r.piped = append(r.piped, text) }

// readPiped parses the stored text as a script.
func (r *reader) readPiped() {
	for _, text := range r.piped {
		r.denies(text)
		r.mayBeScript(word{texts: []string{text}})
	}
}

// texts returns the possible commands in an unparsed text: a shell may accept commands that a
// parser does not.
func texts(text string) []string {
	all := []string{text}
	add := func(text string) {
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	add(strings.ReplaceAll(text, "\\\n", ""))
	blanks := strings.Map(func(r rune) rune {
		switch {
		case r == Anything || r == AnyWord:
			return unicode.ReplacementChar
		case r == '\n' || r == '\t':
			return r
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, all[len(all)-1])
	add(blanks)
	add(strings.Map(func(r rune) rune {
		if strings.ContainsRune(`'"\`, r) {
			return -1
		}
		return r
	}, blanks))
	return all
}
