package dialect

import "github.com/duet-rpc/duet-rpc/internal/domain"

// An AuthMethod is a way to sign in that an agent offers, as clients see it.
type AuthMethod struct {
	ID          string `json:"id" doc:"For agent.authenticate, and for duet-rpc agents login --method."`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Type        string `json:"type" doc:"agent: it does that itself, in a browser mostly; terminal: a program in a terminal does; env_var: variables of its environment do."`
}

// AuthMethods are ways to sign in as clients see them.
func AuthMethods(list []domain.AuthMethod) (methods []AuthMethod) {
	for _, m := range list {
		methods = append(methods, AuthMethod(m))
	}
	return methods
}
