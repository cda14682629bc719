package mcp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// A server's error often repeats its command line.
func TestSecretsOfADefinitionAreTakenOut(t *testing.T) {
	for name, c := range map[string]struct {
		server catalog.MCPServer
		said   string // guarded… is secret
	}{
		"a variable":                  {catalog.MCPServer{Env: map[string]string{"X": "guarded-1"}}, "not guarded-1"},
		"a word of a header":          {catalog.MCPServer{Headers: map[string]string{"X": "Bearer guarded-1"}}, "not guarded-1"},
		"a flag":                      {catalog.MCPServer{Args: []string{"--token", "guarded-1", "--port", "8080-8081"}}, "not guarded-1 at 8080-8081"},
		"a flag with its value":       {catalog.MCPServer{Args: []string{"--api-key=guarded-1"}}, "not --api-key=guarded-1"},
		"the last flag":               {catalog.MCPServer{Args: []string{"--token"}}, "no --token"},
		"a variable among arguments":  {catalog.MCPServer{Args: []string{"run", "-e", "GITHUB_TOKEN=guarded-1", "image-of-it"}}, "GITHUB_TOKEN=guarded-1 of image-of-it"},
		"a header among arguments":    {catalog.MCPServer{Args: []string{"mcp-remote", "--header", "Authorization: Bearer guarded-1"}}, "bad word guarded-1"},
		"a header behind its flag":    {catalog.MCPServer{Args: []string{"--header=X-Api-Key: guarded-1"}}, "bad word guarded-1"},
		"a password in an address":    {catalog.MCPServer{Args: []string{"postgres://alice:guarded-1@db.test/notes"}}, "postgres://alice:guarded-1@db.test/notes: guarded-1"},
		"a key in an address":         {catalog.MCPServer{URL: "http://mcp.test/mcp?key=guarded%2F1&x=y"}, "http://mcp.test/mcp?key=guarded%2F1&x=y: guarded/1"},
		"a key in no address":         {catalog.MCPServer{URL: "htp://%zz?key=guarded-1"}, "guarded-1 is wrong"},
		"a word that every agent has": {catalog.MCPServer{}, "word of cache.test"},
		"an address in a variable":    {catalog.MCPServer{Env: map[string]string{"X": "redis://:guarded-1@cache.test"}}, "no guarded-1 at cache.test"},
	} {
		t.Run(name, func(t *testing.T) {
			said := withoutSecrets(c.said, c.server, map[string]string{"LANG": "word", "USER": "cache.test"})
			assert.NotContains(t, said, "guarded")
			for word := range strings.FieldsSeq(c.said) {
				if !strings.Contains(word, "guarded") {
					assert.Contains(t, said, word)
				}
			}
		})
	}
}
