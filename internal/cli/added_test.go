package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/cli"
	"github.com/duet-rpc/duet-rpc/internal/registry"
)

func TestRecordRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "agents")
	records, err := cli.AddedRead(dir)
	require.NoError(t, err, "there need be no directory")
	plan := func(version string) registry.Plan {
		return registry.Plan{Entry: registry.Entry{ID: "x", Version: version}, Via: registry.ViaBinary, SHA256: "s", Directory: filepath.Join(dir, "x", version)}
	}
	first := cli.AddedOf("mine.x", "/r.json", plan("1.0.0"), "[agents.x]\n", cli.Record{})
	require.NoError(t, records.Put(first))
	second := cli.AddedOf("mine.x", "/r.json", plan("1.0.1"), "[agents.x]\n#\n", first)
	require.NoError(t, records.Put(second))
	records, err = cli.AddedRead(dir)
	require.NoError(t, err)
	got, found := records.Find("mine.x")
	require.True(t, found)
	assert.Equal(t, second, got)
	assert.Equal(t, []string{filepath.Join(dir, "x", "1.0.0"), filepath.Join(dir, "x", "1.0.1")}, got.Directories)
	require.NoError(t, records.Forget("mine.x"))
	require.NoError(t, records.Forget("mine.x"))
	records, err = cli.AddedRead(dir)
	require.NoError(t, err)
	assert.Empty(t, records.Names())
}

// A record is a file that can be edited, so only directories below the archive directory are
// removed.
func TestRemoveOnlyArchiveDirectories(t *testing.T) {
	dir := t.TempDir()
	records, err := cli.AddedRead(dir)
	require.NoError(t, err)
	one, shared := filepath.Join(dir, "x", "1.0.0"), filepath.Join(dir, "y", "1.0.0")
	require.NoError(t, records.Put(cli.Record{Name: "other", Directories: []string{shared}}))
	mine := records.Mine(cli.Record{Name: "x"}, []string{
		one, shared, dir, filepath.Join(dir, "x"), filepath.Join(dir, "x", "1.0.0", "bin"), filepath.Dir(dir), "/", "", filepath.Join(dir, "..", "a", "b"), "x/1.0.0",
	})
	assert.Equal(t, []string{one}, mine)
	require.NoError(t, os.MkdirAll(filepath.Join(one, "bin"), 0o700))
	require.NoError(t, cli.RemoveDirectories(mine))
	assert.NoDirExists(t, filepath.Join(dir, "x"))
	require.NoError(t, cli.RemoveDirectories(mine))
}

func TestBrokenRecordIsReported(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"{", `{"name":"other"}`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "x.json"), []byte(text), 0o600))
		_, err := cli.AddedRead(dir)
		assert.ErrorContains(t, err, "x.json is damaged")
	}
}
