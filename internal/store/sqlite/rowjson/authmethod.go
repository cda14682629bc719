package rowjson

import "github.com/duet-rpc/duet-rpc/internal/domain"

// An AuthMethod is a domain.AuthMethod.
type AuthMethod struct {
	ID          string `json:"id"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	Type        string `json:"type,omitempty"`
}

// AuthMethodsOf are ways to sign in as rows have them, nil of nil.
func AuthMethodsOf(list []domain.AuthMethod) []AuthMethod {
	return converted(list, func(m domain.AuthMethod) AuthMethod { return AuthMethod(m) })
}

// AuthMethods are ways to sign in as the program has them, nil of nil.
func AuthMethods(rows []AuthMethod) []domain.AuthMethod {
	return converted(rows, func(m AuthMethod) domain.AuthMethod { return domain.AuthMethod(m) })
}
