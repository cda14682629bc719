package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

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

// However a text is cut into pieces, the shown text is the same, and the stream holds back no
// more than a possible secret.
func TestStream(t *testing.T) {
	list := []string{"sk-01234567", "sk-01234567-longer", "-longer-still"}
	s := secrets(list...)
	for _, text := range []string{"say sk-01234567-longer and sk-01234567 sk-01234567-long, s", "sk-sk-sk-01234567-longer-still", "nothing"} {
		for i := range len(text) + 1 {
			for j := i; j <= len(text); j++ {
				stream, shown := redact.Stream{Secrets: s}, ""
				for _, piece := range []string{text[:i], text[i:j], text[j:]} {
					shown += stream.Add(piece)
				}
				assert.Equal(t, s.Text(text), shown+stream.Border(), "%d %d", i, j)
				assert.False(t, stream.Holds())
			}
		}
	}
	none := redact.Stream{}
	assert.Equal(t, "x", none.Add("x")+none.Border())
}

// However borders cut a secret into pieces, a reader cannot recover it.
func TestStreamWithBorders(t *testing.T) {
	const secret, short = "sk-0123456789abcdefghijklmnopqrstuvwxyz!", "12345678"
	s := secrets(secret, short)
	shows := func(text string, cuts ...int) (shown string) {
		stream := redact.Stream{Secrets: s}
		from := 0
		for _, cut := range append(cuts, len(text)) {
			for i := from; i < cut; i++ { // the smallest possible pieces
				shown += stream.Add(text[i : i+1])
			}
			shown += stream.Border() + "|"
			from = cut
		}
		return shown
	}
	for _, secret := range []string{secret, short} {
		text := "see " + secret + " there"
		for i := range len(text) {
			for j := i; j < len(text); j++ {
				shown := shows(text, i, j)
				assert.Contains(t, shown, "[secret]")
				for k := range len(secret) - 10 {
					assert.NotContains(t, strings.ReplaceAll(shown, "|", ""), secret[k:k+10], "cut at %d and %d: %s", i, j, shown)
				}
				assert.Equal(t, "see ", strings.ReplaceAll(shown, "|", "")[:4])
				assert.True(t, strings.HasSuffix(strings.ReplaceAll(shown, "|", ""), " there"), shown)
			}
		}
	}
	assert.Equal(t, "sk-0|[secret] x|", shows("sk-0"+secret[4:]+" x", 4))
	assert.Equal(t, "a [secret]|[secret] x|", shows("a "+secret+" x", 15))
	assert.Equal(t, "a sk-0|123 it is none|", shows("a sk-0123 it is none", 6), "nothing else is touched")
	assert.Equal(t, "sk-01|no|23456789abcdefghijklmnopqrstuvwxyz!|", shows("sk-01no"+secret[5:], 5, 7))
}

func TestPiece(t *testing.T) {
	const secret = "sk-0123456789abcdefghijklmnopqrstuvwxyz!"
	s := secrets(secret)
	for text, want := range map[string]string{
		"":                           "",
		"a " + secret + " b":         "a [secret] b",
		"ends with " + secret[:12]:   "ends with [secret]",
		"ends with " + secret[:9]:    "ends with " + secret[:9],
		secret[10:] + " begins":      "[secret] begins",
		secret[len(secret)-5:] + "x": secret[len(secret)-5:] + "x",
		secret[10:30]:                secret[10:30], // the middle of a secret is not recognised
	} {
		assert.Equal(t, want, s.Piece(text))
	}
	assert.Equal(t, `{"a":"[secret]","b":"[secret]"}`, string(s.JSON([]byte(`{"a":"`+secret[:20]+`","b":"`+secret[20:]+`"}`))))
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
