package catalog_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

func TestBytesOfATerminalComeThroughAMessage(t *testing.T) {
	for text, encoding := range map[string]string{"": "utf-8", "é\x1b[0m": "utf-8", "a\xff": "base64", "\xc3": "base64"} {
		data, got := catalog.EncodeBytes([]byte(text))
		assert.Equal(t, encoding, got, "%q", text)
		back, err := catalog.DecodeBytes(data, got)
		require.NoError(t, err)
		assert.Equal(t, text, string(back))
	}
	plain, err := catalog.DecodeBytes("YQ==", "")
	require.NoError(t, err)
	assert.Equal(t, "YQ==", string(plain))
	_, err = catalog.DecodeBytes("no base64", "base64")
	assert.Error(t, err)
	_, err = catalog.DecodeBytes("x", "utf-7")
	assert.Error(t, err)
}
