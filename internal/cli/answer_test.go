package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func schemaOf(t *testing.T, text string) (*answerSchema, error) {
	name := filepath.Join(t.TempDir(), "schema.json")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return readAnswer(name)
}

func TestAnswerMustFitSchema(t *testing.T) {
	s, err := schemaOf(t, `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
	require.NoError(t, err)
	for message, want := range map[string]string{`{"n": 1}`: `{"n": 1}`, "\n```json\n{\"n\":2}\n```\n": `{"n":2}`} {
		got, err := s.Check(message)
		assert.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for message, why := range map[string]string{
		"": "it is not JSON: it is empty", "Here it is: {}": "it is not JSON", `{"n":"1"}`: "it does not fit the schema", `{"n":1,"m":2}`: "it does not fit the schema", `{"n":1} {"n":1}`: "it is not JSON",
	} {
		_, err := s.Check(message)
		assert.ErrorContains(t, err, why, message)
	}
	assert.Contains(t, s.Asking("Count"), "Count\n\nYour last message must be JSON alone")
	assert.Contains(t, s.Again(errors.New("it is empty")), "cannot be used: it is empty")
	assert.Contains(t, s.Again(errors.New("x")), `"required":["n"]`)
}

func TestInvalidSchemaIsRefused(t *testing.T) {
	for text, why := range map[string]string{"": "", "[]": "it is a JSON array, and must be an object", `{"type":1}`: "", `{"$ref":"file:///etc/passwd"}`: ""} {
		_, err := schemaOf(t, text)
		assert.ErrorContains(t, err, "is not a JSON Schema: "+why, text)
	}
	_, err := readAnswer(filepath.Join(t.TempDir(), "none"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}
