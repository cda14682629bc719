//go:build soak

package clients

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// A terminal lists the newest sessions of 100 hosts, with 20 sessions each. The hosts are commands of this machine that write an answer;
// 5 of them are silent. The first screen has what this machine and the hosts have answered by then.
func BenchmarkListOfManyHosts(b *testing.B) {
	const (
		hosts    = 100
		silent   = 5
		sessions = 20
	)
	s := e2e.NewSite(b)
	s.Run("prompt", "--yes", "quiet figs")
	var own struct {
		Projects []map[string]any `json:"projects"`
	}
	require.NoError(b, json.Unmarshal([]byte(s.Run("session", "list", "--all-projects", "--json")), &own))
	project := own.Projects[0]
	one := project["turns"].([]any)[0].(map[string]any)
	var turns []any
	for n := range sessions {
		turn := maps.Clone(one)
		turn["active_at"] = time.Now().Add(-time.Duration(n) * time.Minute)
		turns = append(turns, turn)
	}
	project["turns"] = turns
	answer, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 0, "result": map[string]any{"projects": []any{project}}})
	require.NoError(b, err)
	file := filepath.Join(s.Home, "answer")
	require.NoError(b, os.WriteFile(file, frame.Append(nil, frame.LSP, answer), 0o600))
	var config strings.Builder
	for n := range hosts {
		line := fmt.Sprintf(`"cat", %q`, file)
		if n < silent {
			line = `"sleep", "1000"`
		}
		fmt.Fprintf(&config, "[hosts.h%03d]\ncommand = [\"sh\", \"-c\", 'exec \"$0\" \"$1\"', %s]\n", n, line)
	}
	s.Agents(config.String())

	var first, last time.Duration
	var memory int64
	rounds := 0
	for b.Loop() {
		require.NoError(b, os.RemoveAll(filepath.Join(s.Home, "state", "duet", "hosts"))) // otherwise the silent ones are waited for less
		rounds++
		begun := time.Now()
		w := s.Window(160, 50, "session", "list", "--all-projects")
		most := e2e.WatchMemory(w.Cmd.Process.Pid)
		w.Shows("asking ", "quiet figs")
		first += time.Since(begun)
		require.Zero(b, w.Leaves())
		last += time.Since(begun)
		memory = max(memory, most())
		require.Contains(b, w.Printed.String(), "no answer yet from")
	}
	b.ReportMetric(float64(first.Milliseconds())/float64(rounds), "ms-to-first-screen")
	b.ReportMetric(float64(last.Milliseconds())/float64(rounds), "ms-to-whole-list")
	b.ReportMetric(float64(memory)/1e6, "MB-peak")
}
