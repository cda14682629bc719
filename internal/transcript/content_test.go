package transcript

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func encoded(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }

func TestBlocksComeBackAsTheyWere(t *testing.T) {
	text := "package main\n"
	for _, b := range []catalog.ContentBlock{
		{Type: "image", MIMEType: "image/png", Data: "AAEC", URI: "file:///a.png", Annotations: []byte(`{"priority":1}`)},
		{Type: "audio", MIMEType: "audio/wav", Data: "AAEC"},
		{Type: "resource", Name: "main.go", Resource: &catalog.Resource{URI: "file:///p/main.go", MIMEType: "text/x-go", Text: &text}},
		{Type: "resource", Name: "x", Resource: &catalog.Resource{URI: "file:///x", Blob: "AAEC"}},
		{Type: "resource_link", URI: "https://example.org/a", Name: "A", Title: "t", Description: "d", Size: 7},
	} {
		c, err := ReadContent(b)
		require.NoError(t, err, b.Type)
		assert.Equal(t, b, writeContent(c))
		if b.Type != "resource_link" {
			assert.Equal(t, domain.AttachmentID(c.Data), c.Attachment)
			assert.EqualValues(t, len(c.Data), c.Size)
		}
	}
}

func TestWhatIsWrongWithABlock(t *testing.T) {
	long := strings.Repeat("x", MaxBlock+1)
	image := func(mime, data string) catalog.ContentBlock {
		return catalog.ContentBlock{Type: "image", MIMEType: mime, Data: data}
	}
	link := func(uri, name string) catalog.ContentBlock {
		return catalog.ContentBlock{Type: "resource_link", URI: uri, Name: name}
	}
	for name, c := range map[string]struct {
		block catalog.ContentBlock
		want  string // the invalid member; empty: none
	}{
		"the longest":         {image("image/png", encoded(MaxBlock)), ""},
		"one byte more":       {image("image/png", encoded(MaxBlock+1)), "data"},
		"much more":           {image("image/png", strings.Repeat("A", 3*MaxBlock)), "data"},
		"no padding":          {image("image/png", "AAE"), ""},
		"line ends":           {image("image/png", "AA\r\nEC"), ""},
		"no base64":           {image("image/png", "<svg>"), "data"},
		"no data":             {image("image/png", ""), "data"},
		"nothing but padding": {image("image/png", "===="), "data"},
		"no type":             {image("", "AAEC"), "mimeType"},
		"another type":        {image("text/html", "AAEC"), "mimeType"},
		"control characters":  {image("image/png\x1b[31m", "AAEC"), "mimeType"},
		"a line end":          {image("image/png\nX-Header: 1", "AAEC"), "mimeType"},
		"a long type":         {image("image/"+strings.Repeat("x", 200), "AAEC"), "mimeType"},
		"parameters":          {image("image/svg+xml; charset=utf-8", "AAEC"), ""},
		"no resource":         {catalog.ContentBlock{Type: "resource"}, "resource"},
		"no uri":              {catalog.ContentBlock{Type: "resource", Resource: &catalog.Resource{Blob: "AAEC"}}, "resource.uri"},
		"no contents":         {catalog.ContentBlock{Type: "resource", Resource: &catalog.Resource{URI: "u"}}, "resource.blob"},
		"a long text":         {catalog.ContentBlock{Type: "resource", Resource: &catalog.Resource{URI: "u", Text: &long}}, "resource.text"},
		"no link":             {link("", "n"), "uri"},
		"a long link":         {link(strings.Repeat("u", maxURI+1), "n"), "uri"},
		"a link that steers":  {link("https://example.org/\x1b]8;;\x07", "n"), "uri"},
		"a long name":         {link("u", strings.Repeat("n", maxName+1)), "name"},
		"no UTF-8":            {link("u", "\xff"), "name"},
		"text":                {catalog.ContentBlock{Type: "text", Text: "t"}, "type"},
		"unknown":             {catalog.ContentBlock{Type: "video"}, "type"},
	} {
		_, err := ReadContent(c.block)
		if c.want == "" {
			assert.NoError(t, err, name)
			continue
		}
		var wrong *contentError
		if assert.ErrorAs(t, err, &wrong, name) {
			assert.Equal(t, c.want, wrong.Member, name)
			assert.Less(t, len(wrong.Error()), 300, name)
			assert.NotContains(t, wrong.Error(), "\x1b", name)
		}
	}
}

func TestThePartsOfAPrompt(t *testing.T) {
	blocks := []catalog.ContentBlock{{Type: "text", Text: "a"}, {Type: "resource_link", URI: "u", Name: "n"}, {Type: "text", Text: "b"}}
	for text, want := range map[string]string{"": "a\n\nb", "first": "first\n\na\n\nb"} {
		whole, list, err := Prompt(text, blocks)
		require.NoError(t, err)
		assert.Equal(t, want, whole)
		assert.Equal(t, []domain.Content{{Block: domain.Block{Type: "resource_link", URI: "u", Name: "n"}}}, list)
	}
	wrong := func(blocks ...catalog.ContentBlock) *domain.Error {
		_, _, err := Prompt("", blocks)
		var e *domain.Error
		if err != nil {
			require.ErrorAs(t, err, &e)
		}
		return e
	}
	big := catalog.ContentBlock{Type: "image", MIMEType: "image/png", Data: encoded(maxPrompt / 2)}
	assert.Nil(t, wrong(big, big))
	assert.Equal(t, "content", wrong(big, big, catalog.ContentBlock{Type: "image", MIMEType: "image/png", Data: "AA=="}).Param)
	many := make([]catalog.ContentBlock, MaxBlocks+1)
	for i := range many {
		many[i] = catalog.ContentBlock{Type: "resource_link", URI: "u"}
	}
	assert.Nil(t, wrong(many[1:]...))
	assert.Contains(t, wrong(many...).Expected, "100 blocks")
	assert.Equal(t, "content[1].type", wrong(catalog.ContentBlock{Type: "text"}, catalog.ContentBlock{Type: "video"}).Param)
}

func TestLabels(t *testing.T) {
	for want, b := range map[string]domain.Block{
		"[image image/png 12 KB]":               {Type: "image", MIMEType: "image/png", Size: 12_345},
		"[audio audio/wav 999 B]":               {Type: "audio", MIMEType: "audio/wav", Size: 999},
		"[resource main.go text/x-go 1.5 MB]":   {Type: "resource", Name: "main.go", MIMEType: "text/x-go", URI: "file:///main.go", Size: 1_500_000},
		"[resource link A https://example.org]": {Type: "resource_link", Name: "A", URI: "https://example.org"},
		"[resource link a  b u]":                {Type: "resource_link", Name: "a\n\x7fb", URI: "u"},
	} {
		assert.Equal(t, want, label(b))
	}
}
