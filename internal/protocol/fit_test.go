package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestATimeThatIsTooLongIsTheLongest(t *testing.T) {
	for n, want := range map[int64]time.Duration{
		-1 << 63: -LongestDuration, -1: -time.Millisecond, 0: 0, 1: time.Millisecond, 1000: time.Second,
		LongestDuration.Milliseconds(): LongestDuration, LongestDuration.Milliseconds() + 1: LongestDuration, 1 << 62: LongestDuration, 1<<63 - 1: LongestDuration,
	} {
		assert.Equal(t, want, Milliseconds(n), n)
	}
	assert.Equal(t, LongestDuration, Milliseconds(^uint(0)))
}

func TestHeadlines(t *testing.T) {
	assert.Equal(t, "a b", Headline(" a\n b ", 3))
	assert.Equal(t, "ab…", Headline("abcd", 3))
}

func TestListsAreMadeToFit(t *testing.T) {
	list := func(n, length int) (l []*Turn) {
		for range n {
			l = append(l, &Turn{Prompt: strings.Repeat("x", length)})
		}
		return l
	}
	size := EncodedSize(list(1, 1000)) // the two brackets leave room for the comma
	assert.Len(t, Fit(list(3, 1000), 3*size)[2].Prompt, 1000, "a list that fits stays unchanged")
	short := Fit(list(3, 1000), 3*size-4)
	require.Len(t, short, 3, "fit shortens texts before it drops items")
	assert.Contains(t, short[0].Prompt, "bytes left out]")
	few := Fit(list(1000, 1000), 10_000)
	assert.NotEmpty(t, few)
	assert.Less(t, len(few), 20)
	assert.LessOrEqual(t, EncodedSize(few), 10_000)
	assert.Empty(t, Fit([]*Turn{}, 1))
}

func TestRawJSONIsMadeToFit(t *testing.T) {
	raw := json.RawMessage(`{"a":["` + strings.Repeat("x", 1000) + `"],"b":1}`)
	assert.Equal(t, raw, FitRaw(raw, len(raw)))
	got := FitRaw(raw, len(raw)-1)
	assert.Contains(t, string(got), "bytes left out]")
	assert.Contains(t, string(got), `"b":1`)
	assert.Equal(t, `{"trimmed":9}`, string(FitRaw(json.RawMessage(`[1,2,3,4]`), 5)))
}

// A shortened input keeps duplicate and similar names, so that it stays as ambiguous as before.
func TestRawJSONThatIsMadeToFitKeepsItsTwins(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, format := range []string{
		`{"command":"rm -rf ~","Command":"make test","content":"%s"}`, `{"command":"rm -rf ~","command":"make test","content":"%s"}`,
		`{ "z" : 1, "a\"\\" : ["\ud800", "%s"] , "n" : 12345678901234567890.10 }`,
	} {
		got := string(FitRaw(json.RawMessage(fmt.Sprintf(format, long)), 700))
		var want bytes.Buffer
		require.NoError(t, json.Compact(&want, fmt.Appendf(nil, format, strings.Repeat("x", 256)+"… [744 of 1000 bytes left out]")))
		assert.Equal(t, want.String(), got)
	}
	escaped := FitRaw(json.RawMessage(`["`+strings.Repeat(`\n`, 300)+`"]`), 590)
	var texts []string
	require.NoError(t, json.Unmarshal(escaped, &texts))
	assert.Equal(t, strings.Repeat("\n", 256)+"… [44 of 300 bytes left out]", texts[0])
}

func TestLimitsOfPages(t *testing.T) {
	n := func(v uint) *uint { return &v }
	assert.Equal(t, 20, PageSize(nil, 20, 1000))
	assert.Equal(t, 20, PageSize(n(0), 20, 1000))
	assert.Equal(t, 1000, PageSize(n(1000), 20, 1000))
	assert.Equal(t, 1000, PageSize(n(1001), 20, 1000))
}
