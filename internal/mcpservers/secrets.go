package mcpservers

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/redact"
)

// secretName is what a flag, a variable or a header is called that has a secret.
var secretName = lazyregexp.New(`(?i)key|token|secret|passw|pwd|auth|credential|bearer|cookie`)

// WithoutSecrets takes out of a text what may be secret of a server's definition: its
// variables, its headers, the user and the query of its URL, and arguments that are
// called as secrets are.
func WithoutSecrets(text string, server catalog.MCPServer, environment map[string]string) string {
	var secrets definitionSecrets
	for _, values := range []map[string]string{server.Env, server.Headers, environment} {
		for name, value := range values {
			if !clientenv.IsPublic(name) && !filepath.IsAbs(value) { // where things are says what is wrong
				secrets.add(value)
			}
		}
	}
	secrets.address(server.URL)
	for i, arg := range server.Args {
		secrets.address(arg)
		name, value, joined := cutAny(arg, "=:")
		switch flag := strings.HasPrefix(arg, "-"); {
		case !secretName().MatchString(name):
			// as in --header "Authorization: Bearer …", which is an argument of its own
			if inner, rest, ok := cutAny(value, "=:"); ok && secretName().MatchString(inner) {
				secrets.add(rest)
			}
		case joined:
			secrets.add(value)
		case flag && i+1 < len(server.Args):
			secrets.add(server.Args[i+1])
		}
	}
	return secrets.Text(text)
}

// definitionSecrets are the secrets of a server's definition.
type definitionSecrets struct{ redact.Secrets }

// add makes a value secret, and what follows the first word of it, as in "Bearer …".
func (s *definitionSecrets) add(value string) {
	value = strings.TrimSpace(value)
	s.Add(value)
	if _, word, ok := strings.Cut(value, " "); ok {
		s.Add(strings.TrimSpace(word))
	}
	s.address(value)
}

// address makes the user and the query of a URL secret, as they are written and as they
// are meant. What is none has what stands where a URL has them.
func (s *definitionSecrets) address(text string) {
	_, rest, ok := strings.Cut(text, "://")
	if !ok {
		return
	}
	rest, fragment, _ := strings.Cut(rest, "#")
	s.value(fragment)
	rest, query, _ := strings.Cut(rest, "?")
	s.value(query)
	for _, part := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
		_, value, _ := strings.Cut(part, "=")
		s.value(value)
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		s.value(rest[:at])
		_, password, _ := strings.Cut(rest[:at], ":")
		s.value(password)
	}
}

// value makes a part of a URL secret.
func (s *definitionSecrets) value(escaped string) {
	s.Add(escaped)
	if meant, err := url.QueryUnescape(escaped); err == nil {
		s.Add(meant)
	}
	if meant, err := url.PathUnescape(escaped); err == nil { // which leaves a plus as it is
		s.Add(meant)
	}
}

// cutAny cuts a text at the first of some characters.
func cutAny(text, chars string) (before, after string, found bool) {
	i := strings.IndexAny(text, chars)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}
