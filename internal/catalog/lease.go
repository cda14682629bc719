package catalog

// A LeaseRequest says what the hub needs an executor for.
type LeaseRequest struct {
	Thread  string   // the conversation's id; "" for a terminal of a person
	Agent   string   // the agent's name in the configuration; "" for a terminal
	Driver  string   // acp, command or executor; "" means command
	Command []string // driver executor: the program that somebody else wrote
}

// A Lease is an executor that somebody uses. Its methods may be called from any
// goroutine.
type Lease interface {
	Executor
	// Release gives it back; it may be ended when nobody uses it. It may be
	// called more than once.
	Release()
	// Kill ends the executor and all of its agents at once.
	Kill()
}
