package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatAProjectIsBuiltWith(t *testing.T) {
	script := `{"scripts": {"build": "vite build"}}`
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"nothing":                  {map[string]string{"README.md": ""}, nil},
		"Go":                       {map[string]string{"go.mod": "module m"}, []string{"go: go build ./... && go vet ./..."}},
		"a workspace":              {map[string]string{"go.work": ""}, []string{"go: go build ./... && go vet ./..."}},
		"Rust and a Makefile":      {map[string]string{"Cargo.toml": "", "Makefile": ""}, []string{"cargo: cargo build", "make: make"}},
		"npm":                      {map[string]string{"package.json": script}, []string{"npm: npm run build"}},
		"pnpm":                     {map[string]string{"package.json": script, "pnpm-lock.yaml": ""}, []string{"npm: pnpm run build"}},
		"yarn":                     {map[string]string{"package.json": script, "yarn.lock": ""}, []string{"npm: yarn run build"}},
		"bun":                      {map[string]string{"package.json": script, "bun.lock": ""}, []string{"npm: bun run build"}},
		"a package without script": {map[string]string{"package.json": `{"scripts": {"test": "x"}}`}, nil},
		"a package that is none":   {map[string]string{"package.json": "{"}, nil},
		"tsc without a script":     {map[string]string{"package.json": "{}", "tsconfig.json": "{}", "node_modules/.bin/tsc": ""}, []string{"typescript: node_modules/.bin/tsc --noEmit"}},
		"tsc that is not there":    {map[string]string{"tsconfig.json": "{}"}, nil},
		"a script before tsc":      {map[string]string{"package.json": script, "tsconfig.json": "{}", "node_modules/.bin/tsc": ""}, []string{"npm: npm run build"}},
		"a page and its backend":   {map[string]string{"package.json": script, "go.mod": "module m"}, []string{"npm: npm run build", "go, backend: go build ./... && go vet ./..."}},
		"C#":                       {map[string]string{"shop.csproj": ""}, []string{"dotnet: dotnet build"}},
		"CMake":                    {map[string]string{"CMakeLists.txt": ""}, []string{"cmake: cmake -S . -B build && cmake --build build"}},
		"a directory is no file":   {map[string]string{"Makefile/x": ""}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "what [is] this")
			for file, text := range c.files {
				file = filepath.Join(root, filepath.FromSlash(file))
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
				require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
			}
			var got []string
			for _, target := range detect(root) {
				assert.True(t, target.Detected)
				kind := ""
				if target.Backend {
					kind = ", backend"
				}
				got = append(got, target.Name+kind+": "+target.Shell+strings.Join(target.Command, " "))
			}
			assert.Equal(t, c.want, got)
		})
	}
}
