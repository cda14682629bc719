//go:build lint

package architecture

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The files, packages, functions and tests that the documents about the code name exist.
func TestTheDocumentNamesWhatThereIs(t *testing.T) {
	known := declaredNames(t)
	for _, document := range []string{"docs/architecture.md", "CONTRIBUTING.md"} {
		text, err := os.ReadFile(filepath.Join(root, document))
		require.NoError(t, err)
		assert.Empty(t, misnamed(string(text), known), document)
	}

	assert.Equal(t, []string{"nothere.go"}, misnamed("| x | `internal/hub/launch.go`, `nothere.go` |", known))
	assert.Equal(t, []string{"internal/hub/nothere.go"}, misnamed("`internal/hub/nothere.go`", known))
	assert.Equal(t, []string{"schedule.go"}, misnamed("```\n intake: queue.go → schedule.go\n```", known))
	assert.Equal(t, []string{"schema.sql", "vscode/src/nothere.ts"}, misnamed("`schema.sql`, `vscode/src/nothere.ts`", known))
	assert.Equal(t, []string{"TestNothing"}, misnamed("held by `TestNothing`", known))
	assert.Equal(t, []string{"Nobody"}, misnamed("`hub/launch.go` (`Launch`, `Nobody`)", known))
}

var (
	quoted     = regexp.MustCompile("`([^`]+)`")
	inPicture  = regexp.MustCompile(`[\w/]+\.go\b|\b[a-z/]+\b`)
	goFile     = regexp.MustCompile(`^[\w/-]+\.go$`)
	sourceFile = regexp.MustCompile(`^[\w/-]+\.(go|sql|toml|ts)$`)
	pathLike   = regexp.MustCompile(`^[a-z][\w-]*(/[\w-]+)+$`)
	testName   = regexp.MustCompile(`^(Test|Fuzz)[A-Z]\w*$`)
	functional = regexp.MustCompile(`^[A-Za-z]\w+$`)
)

// misnamed lists the names in a document that exist nowhere. A short name is relative to internal,
// or to the last package that the document named.
func misnamed(text string, known map[string]map[string]bool) (wrong []string) {
	picture := false
	last := ""
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			picture = !picture
			continue
		}
		if !picture {
			if strings.HasPrefix(line, "|") {
				last = ""
			}
			lastFile, end := "", 0 // the last named file, and its position
			for _, at := range quoted.FindAllStringSubmatchIndex(line, -1) {
				name := line[at[2]:at[3]]
				between := line[end:at[0]]
				found, isFile := resolve(name, last)
				switch {
				case found != "" && isFile:
					last, lastFile, end = path.Dir(found), found, at[1]
				case found != "":
					last, lastFile = found, ""
				case sourceFile.MatchString(name), pathLike.MatchString(name) && strings.HasPrefix(name, "internal/"):
					wrong = append(wrong, name)
				case testName.MatchString(name) && !known[""][name]:
					wrong = append(wrong, name)
				case lastFile != "" && strings.HasPrefix(between, " (") && !strings.Contains(between, ")") && functional.MatchString(name) && !known[lastFile][name]:
					wrong = append(wrong, name)
				}
			}
			continue
		}
		for _, name := range inPicture.FindAllString(line, -1) {
			found, isFile := resolve(name, last)
			switch {
			case found != "" && isFile:
				last = path.Dir(found)
			case found != "" && strings.Contains(line, name+":"): // what follows is in it
				last = found
			case goFile.MatchString(name):
				wrong = append(wrong, name)
			}
		}
	}
	return wrong
}

// resolve returns the path of the file or package with that name, or "".
func resolve(name, last string) (found string, isFile bool) {
	for _, at := range []string{path.Join(last, name), name, path.Join("internal", name), path.Join("internal", last, name)} {
		if info, err := os.Stat(filepath.Join(root, at)); err == nil {
			return at, !info.IsDir()
		}
	}
	return "", false
}

// declaredNames returns the functions and methods of each file, and the tests under "".
func declaredNames(t *testing.T) map[string]map[string]bool {
	t.Helper()
	names := map[string]map[string]bool{"": {}}
	for _, s := range sources(t) {
		names[s.path] = make(map[string]bool)
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				names[s.path][f.Name.Name] = true
				if testName.MatchString(f.Name.Name) {
					names[""][f.Name.Name] = true
				}
			}
		}
	}
	return names
}
