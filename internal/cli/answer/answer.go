// Package answer is about the last message of an agent where a program waits for it:
// JSON of a shape that was asked for.
package answer

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// A Schema is a JSON Schema that an answer has to fit.
type Schema struct {
	raw      json.RawMessage
	resolved *jsonschema.Resolved
}

// Read reads a JSON Schema from a file. References to other files are refused.
func Read(file string) (*Schema, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, fmt.Errorf("%s is no JSON Schema: %w", file, err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("%s is no JSON Schema: %w", file, err)
	}
	return &Schema{raw, resolved}, nil
}

// Asking is a prompt that asks for an answer that fits: agents have no other way to
// be told.
func (s *Schema) Asking(prompt string) string {
	return prompt + "\n\nYour last message must be JSON alone, without a code fence or any other words, and valid under this JSON Schema:\n" + string(s.raw)
}

// Again is a prompt that asks for another answer, after one that does not fit.
func (s *Schema) Again(why error) string {
	return s.Asking("Your last message cannot be used: " + why.Error() + ". Give the same answer again as it was asked for.")
}

// Check is the JSON of a message that fits, without a fence around it.
func (s *Schema) Check(message string) (string, error) {
	text := unfenced(strings.TrimSpace(message))
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		if text == "" {
			err = errors.New("it is empty")
		}
		return "", fmt.Errorf("it is not JSON: %w", err)
	}
	if err := s.resolved.Validate(value); err != nil {
		return "", fmt.Errorf("it does not fit the schema: %w", err)
	}
	return text, nil
}

// unfenced is what is in the fence that is all of a text.
func unfenced(text string) string {
	first, rest, ok := strings.Cut(text, "\n")
	if ok && strings.HasPrefix(first, "```") && strings.HasSuffix(rest, "```") && strings.Count(rest, "```") == 1 {
		return strings.TrimSpace(strings.TrimSuffix(rest, "```"))
	}
	return text
}
