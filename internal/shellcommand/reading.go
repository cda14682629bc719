package shellcommand

// A Part is a simple command that a script could run.
type Part struct {
	// Text is the command with its arguments, each separated by one blank and
	// with quotes only where they matter. Anything stands in it for the output of
	// another command.
	Text string
	// source is the same as it was written.
	source string
	// says are the words that a rule has to have itself to allow it: the name of
	// a command that runs others or changes what they are, a redirection that
	// writes to a file, a variable that is set for it.
	says []string
	// runs are the commands that it runs, if that is all it does: env, nohup,
	// bash -c. A rule allows it if it allows all of these.
	runs []Part
	// changesTo is the directory that it changes to, if nothing came before and
	// that is one below the one that the script begins in, or a path from the
	// root.
	changesTo string
	script    string // that it gives to a shell
}

// A reading is how one shell would read a command.
type reading struct {
	parts   []Part
	unclear bool     // it cannot be told that the parts are all, or what they are
	denial  []string // see Command
}

func (r *reading) isUnclear() bool { return r.unclear || len(r.parts) == 0 }

// A reader takes a script apart as one shell would.
type reader struct {
	reading
	shell   dialect
	nesting int
	left    *int // parts that may still come

	// read has a reader read a script. It is the top of what reads one, and scripts
	// are in scripts.
	read func(r *reader, text string)

	values   map[string][]string // of variables that the script sets to texts
	repeated bool                // what comes may run more than once, or later
	stdin    bool                // a shell reads its script from somewhere else
	piped    []string            // what is written, perhaps for it
}

func newReader(shell dialect) *reader {
	left := mostParts
	return &reader{shell: shell, left: &left, values: make(map[string][]string)}
}

// inner is a reader for what a part of the script runs.
func (r *reader) inner(shell dialect) *reader {
	return &reader{shell: shell, nesting: r.nesting + 1, left: r.left, read: r.read, values: r.values, repeated: r.repeated || len(r.parts) > 0}
}

// doubt notes that it cannot be told what would run.
func (r *reader) doubt() { r.unclear = true }
