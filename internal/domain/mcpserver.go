package domain

// An MCPServer is a server of the Model Context Protocol that an agent is to
// use: a program, or an address.
type MCPServer struct {
	Name    string
	Command string // of a program
	Args    []string
	Env     map[string]string
	Type    string // stdio, http or sse; "": stdio
	URL     string // of one that is no program
	Headers map[string]string
}
