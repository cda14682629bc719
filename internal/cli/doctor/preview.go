package doctor

import (
	"os"
	"path/filepath"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

// checkPreview looks whether the directory of [preview] is there, where one is configured.
func checkPreview(c *config.Config, root string) []Finding {
	if c.Preview.Directory == nil {
		return nil
	}
	directory := *c.Preview.Directory
	f := Finding{Check: "preview", State: OK, Found: directory}
	if !filepath.IsAbs(directory) {
		directory = filepath.Join(root, directory)
	}
	if info, err := os.Stat(directory); err != nil || !info.IsDir() {
		f.State, f.Found, f.Todo = Note, "there is no directory "+f.Found, "build the project, or name another one in [preview]"
	}
	return []Finding{f}
}
