package cli

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Units name the program and the path whatever characters these have.
func TestUnitsOfTheWeb(t *testing.T) {
	unit, after, err := webUnit("linux", `/opt/my "tools"/duet-rpc $1 100%`, `/usr/bin:/opt/50%`)
	require.NoError(t, err)
	assert.Contains(t, unit, `ExecStart="/opt/my \"tools\"/duet-rpc $$1 100%%" web`+"\n"+`Environment="PATH=/usr/bin:/opt/50%%"`)
	assert.Contains(t, strings.Join(after, "\n"), "systemctl --user enable --now duet-web")

	unit, _, err = webUnit("darwin", "/opt/a&b/<duet-rpc>", "/usr/bin")
	require.NoError(t, err)
	var texts []string
	for d := xml.NewDecoder(strings.NewReader(unit)); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		if text, ok := token.(xml.CharData); ok {
			texts = append(texts, string(text))
		}
	}
	assert.Contains(t, texts, "/opt/a&b/<duet-rpc>")
	assert.Contains(t, texts, "/usr/bin")

	_, _, err = webUnit("plan9", "", "")
	require.ErrorContains(t, err, "no unit is known for plan9")
}
