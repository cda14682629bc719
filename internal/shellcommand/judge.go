package shellcommand

import "slices"

// AllowedBy reports whether rules with these patterns allow a command: one is
// for all commands there are, or is this one word for word, or each part is what
// one of them says. inside reports whether a directory is one in which the rules
// are meant to hold: a script may begin by changing to it.
func (c Command) AllowedBy(patterns []Pattern, inside func(dir string) bool) bool {
	for _, p := range patterns {
		if p.isEverything() || !c.IsNothing() && p.text == c.Text || c.said != "" && p.text == c.said {
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

// CouldRun reports whether the command, or any part of it in any way to read
// it, could be what a pattern says.
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
