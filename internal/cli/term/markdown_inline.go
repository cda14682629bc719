package term

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// style is how text looks.
type style uint8

const (
	bold style = 1 << iota
	italic
	struck
	coded
	linked
	dimmed
)

// run is text of one style.
type run struct {
	text  string
	style style
}

// token is a run, or marks that may be emphasis.
type token struct {
	run
	mark        byte // '*', '_' or '~'; 0: text
	count       int
	opens, ends bool
}

// mostMarks limits the marks of a paragraph, because each one may search all earlier ones for
// its pair.
const mostMarks = 1000

var (
	autolink = lazyregexp.New(`^<([a-zA-Z][a-zA-Z0-9+.-]{1,31}:[^\s<>]*)>`)
	entity   = lazyregexp.New(`^&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});`)
)

// inline parses the text of a paragraph. All characters must be visible already.
func inline(text string, base style, marks visible.Marks) []run {
	return resolved(tokens(text, base, marks, 0))
}

func tokens(text string, base style, marks visible.Marks, depth int) (list []token) {
	var plain strings.Builder
	flush := func() {
		if plain.Len() > 0 {
			list = append(list, token{run: run{plain.String(), base}})
			plain.Reset()
		}
	}
	add := func(t ...token) {
		flush()
		list = append(list, t...)
	}
	seen := 0
	unclosed := make(map[int]bool) // lengths of backtick runs without an end
	for i := 0; i < len(text); {
		rest := text[i:]
		switch c := rest[0]; {
		case c == '\\' && len(rest) > 1 && strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", rest[1]) >= 0:
			plain.WriteByte(rest[1])
			i += 2
			continue
		case c == '`':
			n := len(rest) - len(strings.TrimLeft(rest, "`"))
			if end := -1; !unclosed[n] {
				if end = closingTicks(rest[n:], n); end >= 0 {
					add(token{run: run{codeText(rest[n : n+end]), base | coded}})
					i += n + end + n
					continue
				}
				unclosed[n] = true
			}
			plain.WriteString(rest[:n])
			i += n
			continue
		case (c == '[' || c == '!' && strings.HasPrefix(rest, "![")) && depth < 3:
			if label, target, size := link(rest[strings.IndexByte(rest, '['):]); size > 0 {
				if c == '!' {
					size++
				}
				add(linkTokens(label, target, base, marks, depth)...)
				i += size
				continue
			}
		case c == '<':
			if m := autolink().FindStringSubmatch(rest); m != nil {
				add(token{run: run{m[1], base | linked}})
				i += len(m[0])
				continue
			}
		case c == '&':
			if m := entity().FindString(rest); m != "" {
				plain.WriteString(marks.Line(html.UnescapeString(m))) // the entity may be an invisible character
				i += len(m)
				continue
			}
		case (c == '*' || c == '_' || c == '~') && seen < mostMarks:
			seen++
			n := len(rest) - len(strings.TrimLeft(rest, string(c)))
			t := token{run: run{rest[:n], base}, mark: c, count: n}
			before, _ := utf8.DecodeLastRuneInString(text[:i])
			after, _ := utf8.DecodeRuneInString(rest[n:])
			t.opens, t.ends = flanks(c, before, after, i == 0, n == len(rest))
			if c == '~' && n > 2 {
				t.mark = 0
			}
			add(t)
			i += n
			continue
		}
		plain.WriteByte(text[i])
		i++
	}
	flush()
	return list
}

// linkTokens returns a link as it is shown: with its address.
func linkTokens(label, target string, base style, marks visible.Marks, depth int) []token {
	if label == "" || label == target {
		return []token{{run: run{target, base | linked}}}
	}
	var list []token
	for _, r := range resolved(tokens(label, base|linked, marks, depth+1)) {
		list = append(list, token{run: r})
	}
	if target != "" {
		list = append(list, token{run: run{" (" + target + ")", base | dimmed}})
	}
	return list
}

// closingTicks returns the index of the next run of exactly n backticks, or -1.
func closingTicks(text string, n int) int {
	for i := 0; i < len(text); {
		at := strings.IndexByte(text[i:], '`')
		if at < 0 {
			return -1
		}
		i += at
		run := len(text[i:]) - len(strings.TrimLeft(text[i:], "`"))
		if run == n {
			return i
		}
		i += run
	}
	return -1
}

func codeText(text string) string {
	text = strings.ReplaceAll(text, "\n", " ")
	if len(text) > 2 && text[0] == ' ' && text[len(text)-1] == ' ' && strings.Trim(text, " ") != "" {
		return text[1 : len(text)-1]
	}
	return text
}

// longestLabel limits the search for the end of a link's label.
const longestLabel = 1000

// link parses [label](target "title"). size is 0 if text is not a link.
func link(text string) (label, target string, size int) {
	depth, end := 0, -1
	for i := 0; i < min(len(text), longestLabel); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			depth++
		case ']':
			depth--
		}
		if depth == 0 {
			end = i
			break
		}
	}
	if end < 0 || end+1 >= len(text) || text[end+1] != '(' {
		return "", "", 0
	}
	rest := text[end+2:]
	open := 1
	for i := 0; i < min(len(rest), 4*longestLabel); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '\n':
			return "", "", 0
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				target = strings.TrimSpace(rest[:i])
				if strings.HasPrefix(target, "<") {
					target = strings.Trim(target, "<>")
				} else if fields := strings.Fields(target); len(fields) > 1 && strings.ContainsAny(fields[1][:1], `"'(`) {
					target = fields[0] // the rest is the title
				}
				return text[1:end], target, end + 2 + i + 1
			}
		}
	}
	return "", "", 0
}

// flanks reports whether marks may begin or end emphasis, by CommonMark's rules.
func flanks(mark byte, before, after rune, first, last bool) (opens, ends bool) {
	spaceBefore, spaceAfter := first || unicode.IsSpace(before), last || unicode.IsSpace(after)
	punctBefore, punctAfter := !first && isPunct(before), !last && isPunct(after)
	left := !spaceAfter && (!punctAfter || spaceBefore || punctBefore)
	right := !spaceBefore && (!punctBefore || spaceAfter || punctAfter)
	if mark == '_' {
		return left && (!right || punctBefore), right && (!left || punctAfter)
	}
	return left, right
}

func isPunct(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }

// resolved turns pairs of marks into styles of the text between them. Other marks become text.
func resolved(list []token) []run {
	styles := make([]style, len(list))
	for at := range list {
		closer := &list[at]
		for closer.mark != 0 && closer.ends && closer.count > 0 {
			from := -1
			for i := at - 1; i >= 0; i-- {
				o := &list[i]
				if o.mark == closer.mark && o.opens && o.count > 0 && (closer.mark != '~' || o.count == closer.count) {
					from = i
					break
				}
			}
			if from < 0 {
				break
			}
			opener := &list[from]
			used, s := 1, italic
			if closer.mark == '~' {
				used, s = closer.count, struck
			} else if closer.count >= 2 && opener.count >= 2 {
				used, s = 2, bold
			}
			for i := from + 1; i < at; i++ {
				styles[i] |= s
				if list[i].mark != 0 {
					list[i].opens = false // its pair would cross this pair
				}
			}
			opener.count -= used
			closer.count -= used
		}
	}
	var runs []run
	for i, t := range list {
		text := t.text
		if t.mark != 0 {
			text = strings.Repeat(string(t.mark), t.count)
		}
		if text != "" {
			runs = append(runs, run{text, t.style | styles[i]})
		}
	}
	return runs
}
