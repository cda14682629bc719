package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	_ "github.com/duet-rpc/duet-rpc/internal/golden" // for go test ./... -update
	"github.com/duet-rpc/duet-rpc/internal/redact"
)

func secrets(list ...string) *redact.Secrets {
	s := &redact.Secrets{}
	for _, text := range list {
		s.Add(text)
	}
	return s
}

func TestText(t *testing.T) {
	s := secrets("sk-01234567", "sk-01234567-longer", "short12", "exactly8", "sk-01234567")
	for text, want := range map[string]string{
		"":                           "",
		"sk-01234567":                "[secret]",
		"a sk-01234567!":             "a [secret]!",
		"sk-01234567sk-01234567":     "[secret][secret]",
		"sk-01234567-longer":         "[secret]",
		"sk-01234567-longe":          "[secret]-longe",
		"sk-0123456":                 "sk-0123456",
		"sk-sk-01234567":             "sk-[secret]",
		"short12":                    "short12",
		"exactly8":                   "[secret]",
		"\xffsk-01234567\xff":        "\xff[secret]\xff",
		strings.Repeat("s", 100_000): strings.Repeat("s", 100_000),
	} {
		assert.Equal(t, want, s.Text(text))
	}
	none := secrets()
	assert.True(t, none.None())
	assert.Equal(t, "x", none.Text("x"))
	assert.False(t, s.None())
}

// Wherever a text is cut into pieces, what is shown of them is the same, and
// no more is held back than could be a secret.
func TestCut(t *testing.T) {
	list := []string{"sk-01234567", "sk-01234567-longer", "-longer-still"}
	s := secrets(list...)
	for _, text := range []string{"say sk-01234567-longer and sk-01234567 sk-01234567-long, s", "sk-sk-sk-01234567-longer-still", "nothing"} {
		for i := range len(text) + 1 {
			for j := i; j <= len(text); j++ {
				shown, held := "", ""
				for _, piece := range []string{text[:i], text[i:j], text[j:]} {
					var more string
					more, held = s.Cut(held + piece)
					shown += more
					assert.Less(t, len(held), len("sk-01234567-longer"))
					if held != "" {
						begins := false
						for _, secret := range list {
							begins = begins || strings.HasPrefix(secret, held)
						}
						assert.True(t, begins, "%q is the beginning of none", held)
					}
				}
				assert.Equal(t, s.Text(text), shown+s.Text(held), "%d %d", i, j)
			}
		}
	}
}

func TestJSON(t *testing.T) {
	s := secrets("sk-01234567", `with"quote/and\`)
	for raw, want := range map[string]string{
		`{"a":"sk-01234567","sk-01234567":["x sk-01234567"],"n":12345678901234567890}`: `{"a":"[secret]","[secret]":["x [secret]"],"n":12345678901234567890}`,
		`"\u0073k-01234567 <é>"`:           `"[secret] <é>"`,
		`"with\"quote\/and\\ "`:            `"[secret] "`,
		`{"a": "nothing \" here", "b": 1}`: `{"a": "nothing \" here", "b": 1}`,
	} {
		got := s.JSON([]byte(raw))
		assert.Equal(t, want, string(got))
		assert.True(t, json.Valid(got))
	}
	for _, broken := range []string{"", `"`, `"\`, `{"sk-01234567`, "\xff"} {
		assert.Equal(t, broken, string(s.JSON([]byte(broken))))
	}
}
