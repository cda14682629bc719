package shellcommand

import (
	"slices"
	"strings"
)

// A Command is what an agent wants run, read once. The zero value is nothing.
// It is not changed any more, so any goroutine may use it.
type Command struct {
	// Text is what a person is shown: the script that a shell is given, or the
	// words of a program, quoted where they have to be.
	Text string

	isScript bool   // a shell is given the text, as far as that can be read
	said     string // the text as the agent said it; "" where it said words
	readings []reading
	unclear  bool     // in some reading it cannot be told what would run
	denial   []string // what it could run, each as text, perhaps with Anything in it
	scanned  []string // in which commands are looked for without parsing
}

const (
	mostText    = 16 << 10 // bytes of a script that is taken apart
	mostOpening = 400      // characters of such a script that begin something inside of something
	mostParts   = 2000     // of a command, in all readings
	mostNesting = 8        // shells in each other
)

// Read is the command of a text that some shell is given.
func Read(text string) Command {
	c := Command{Text: text, said: text}
	if strings.TrimSpace(text) == "" {
		return c
	}
	c.readScript(text, unknownShell)
	if script := onlyScript(c.readings); script != "" {
		c.Text, c.isScript = script, true
	}
	c.scanned = append(c.scanned, texts(text)...)
	return c
}

// ReadWords is the command of a program with its arguments.
func ReadWords(argv []string) Command {
	if len(argv) == 0 {
		return Command{}
	}
	words := make([]word, len(argv))
	for i, text := range argv {
		words[i] = literal(text)
	}
	c := Command{Text: join(words)}
	r := newScriptReader(bash)
	r.readWords(words)
	c.take(r)
	if script := onlyScript(c.readings); script != "" {
		c.Text, c.isScript = script, true
		c.scanned = append(c.scanned, texts(script)...)
	}
	c.scanned = append(c.scanned, texts(strings.Join(argv, " "))...)
	for _, text := range argv {
		c.unclear = c.unclear || !isPlain(text)
	}
	return c
}

// Script is what a shell is given, if that is all there is to run.
func (c Command) Script() (script string, ok bool) { return c.Text, c.isScript }

// IsNothing reports whether there is nothing to run.
func (c Command) IsNothing() bool { return c.Text == "" }

func (c *Command) readScript(text string, shells []dialect) {
	for _, shell := range shells {
		r := newScriptReader(shell)
		r.readText(text)
		c.take(r)
	}
}

func (c *Command) take(r *reader) {
	c.readings = append(c.readings, r.reading)
	c.unclear = c.unclear || r.isUnclear()
	for _, text := range r.denial {
		if !slices.Contains(c.denial, text) {
			c.denial = append(c.denial, text)
		}
	}
}

// onlyScript is the script of the one shell that all a text does is to start, or
// "".
func onlyScript(readings []reading) string {
	script := ""
	for i, r := range readings {
		if len(r.parts) != 1 || i > 0 && r.parts[0].script != script {
			return ""
		}
		script = r.parts[0].script
	}
	return script
}
