package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/database"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// checkDatabase looks whether the database can be used, without changing it.
func checkDatabase(p project.Project) Finding {
	f := Finding{Check: "database", State: OK}
	if !database.Exists(p) {
		f.Found = "none yet; it is made with the first session"
		return f
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	tellsTodo := false
	info, err := os.Stat(p.Database())
	if err == nil {
		tellsTodo, err = database.Check(ctx, p)
	}
	switch {
	case tellsTodo:
		f.State, f.Found = Wrong, err.Error()
		f.Todo = "sessions are not available until this is fixed; the file was not touched"
	case err != nil:
		f.State, f.Found, f.Todo = Wrong, err.Error(), "look at the permissions of the file and its directory"
	default:
		f.Found = fmt.Sprintf("%.1f MB, nothing wrong", float64(info.Size())/1e6)
	}
	return f
}

// checkTree names the state directory that an earlier build has left in the project.
func checkTree(p project.Project) []Finding {
	dir := filepath.Join(p.Root, ".duet")
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return nil
	}
	return []Finding{{
		Check: "old state", State: Note, Found: dir + " was made by an earlier duet-rpc, or came with the project, and is not read",
		Todo: "remove it if you need nothing in it",
	}}
}
