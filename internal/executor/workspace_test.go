//go:build unix

package executor_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

func TestAdditionalDirectories(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "plain", "")
	more, other := t.TempDir(), t.TempDir()
	beside := filepath.Join(filepath.Dir(p.CWD), "beside") // its path is relative to the cwd
	require.NoError(t, os.Mkdir(beside, 0o700))
	h.context.AdditionalDirectories = []string{more, "../beside", "/no/such/directory"}
	require.NoError(t, os.Symlink(other, filepath.Join(more, "out")))
	files := []string{filepath.Join(more, "f"), filepath.Join(beside, "f"), filepath.Join(other, "f"), filepath.Join(more, "out", "f")}
	for _, f := range files {
		require.NoError(t, os.WriteFile(f, nil, 0o600))
	}
	p.Prompt = "touch " + strings.Join(files, " ")
	execute(t, x, p)
	assert.Equal(t, files[0]+" true true\n"+files[1]+" true true\n"+files[2]+" false false\n"+files[3]+" false false\n", h.text())
	assert.Len(t, h.data("file_change"), 2, "changes there are reported")

	h.context.AdditionalDirectories = []string{other} // another turn's
	p.TaskID, p.Prompt = "task-2", "touch "+files[0]+" "+files[2]
	execute(t, x, p)
	assert.True(t, strings.HasSuffix(h.text(), files[0]+" false false\n"+files[2]+" true true\n"))
}

// An agent can neither read nor write the database, under any name.
func TestAgentCannotAccessHubState(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "plain", "")
	own := filepath.Join(p.CWD, ".duet")
	p.Launch.StateDir = own
	require.NoError(t, os.MkdirAll(filepath.Join(own, "logs"), 0o700))
	db := filepath.Join(own, "duet.db")
	require.NoError(t, os.WriteFile(db, []byte("all sessions"), 0o600))
	at := func(name string) string { return filepath.Join(p.CWD, name) }
	require.NoError(t, os.Symlink(own, at("link")))
	require.NoError(t, os.Symlink(db, at("db.txt")))
	require.NoError(t, os.Link(db, at("hard.txt")))
	require.NoError(t, os.WriteFile(at(".duetted"), nil, 0o600))
	refused := []string{
		db, ".duet/duet.db", "./x/../.duet/duet.db", at("link/duet.db"), at("db.txt"), at("hard.txt"),
		at(".duet/new"), at(".duet/logs/new/newer"), own,
	}
	if _, err := os.Stat(at(".DUET")); err == nil { // the same file on this file system
		refused = append(refused, at(".DUET/duet.db"))
	}
	p.Prompt = "touch " + strings.Join(append(refused, at(".duetted")), " ")
	execute(t, x, p)
	var want strings.Builder
	for _, path := range refused {
		want.WriteString(path + " false false\n")
	}
	assert.Equal(t, want.String()+at(".duetted")+" true true\n", h.text())
	assert.Equal(t, "all sessions", string(must(os.ReadFile(db))(t)))
	assert.NoFileExists(t, at(".duet/new"))
}

// An agent is offered the file methods of its configuration.
func TestOfferedFileMethods(t *testing.T) {
	for files, want := range map[string]string{
		"":                     `{"readTextFile":true,"writeTextFile":true}`,
		catalog.FilesReadWrite: `{"readTextFile":true,"writeTextFile":true}`,
		catalog.FilesWrite:     `{"readTextFile":false,"writeTextFile":true}`,
		catalog.FilesNone:      `{"readTextFile":false,"writeTextFile":false}`,
	} {
		h, x := hubAndExecutor(t)
		p := prompt(t, "plain", "offered")
		p.Launch.Files = files
		execute(t, x, p)
		var offered struct {
			Files struct {
				Read  bool `json:"readTextFile"`
				Write bool `json:"writeTextFile"`
			} `json:"fs"`
			Plan json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(h.text()), &offered))
		assert.JSONEq(t, want, string(must(json.Marshal(offered.Files))(t)), files)
		assert.JSONEq(t, `{}`, string(offered.Plan), "plans with ids, and plans as text")
	}
}
