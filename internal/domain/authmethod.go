package domain

// An AuthMethod is a way to sign in that an agent offers.
type AuthMethod struct {
	ID          string
	Name        string
	Description string
	Type        string // agent, terminal or env_var, or another word, of which nothing is known
}
