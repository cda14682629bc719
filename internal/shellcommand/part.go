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
