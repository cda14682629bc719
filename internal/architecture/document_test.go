package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// What docs/architecture.md names is there: files, packages, functions and tests.
func TestTheDocumentNamesWhatThereIs(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/architecture.md")
	require.NoError(t, err)
	known := declaredNames(t)
	assert.Empty(t, misnamed(string(text), known))

	assert.Equal(t, []string{"nothere.go"}, misnamed("| x | `internal/hub/launch.go`, `nothere.go` |", known))
	assert.Equal(t, []string{"internal/hub/nothere.go"}, misnamed("`internal/hub/nothere.go`", known))
	assert.Equal(t, []string{"schedule.go"}, misnamed("```\n intake: order.go → schedule.go\n```", known))
	assert.Equal(t, []string{"TestNothing"}, misnamed("held by `TestNothing`", known))
	assert.Equal(t, []string{"Nobody"}, misnamed("`hub/launch.go` (`Launch`, `Nobody`)", known))
}

// A reader finds every package in the document, by its path or, in the row of a room that
// it is part of, by the rest of it.
func TestTheDocumentNamesEveryRoom(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/architecture.md")
	require.NoError(t, err)
	out, err := exec.Command("go", "list", module+"/...").Output()
	require.NoError(t, err)
	for _, name := range strings.Fields(string(out)) {
		name = strings.TrimPrefix(name, module+"/")
		if name == "internal/architecture" {
			continue
		}
		assert.True(t, isRoom(string(text), name), "docs/architecture.md does not name %s", name)
	}
}

// isRoom reports whether a package stands in a line that names it, or names it as a part.
func isRoom(text, name string) bool {
	if strings.Contains(text, "`"+strings.TrimPrefix(name, "internal/")+"`") {
		return true
	}
	for line := range strings.Lines(text) {
		for up := name; up != "."; up = path.Dir(up) {
			rest := strings.TrimPrefix(strings.TrimPrefix(name, up), "/")
			if strings.Contains(line, "`"+up+"`") && (rest == "" || strings.Contains(line, "`"+rest+"`")) {
				return true
			}
		}
	}
	return false
}

var (
	quoted     = regexp.MustCompile("`([^`]+)`")
	inPicture  = regexp.MustCompile(`[\w/]+\.go\b|\b[a-z/]+\b`)
	goFile     = regexp.MustCompile(`^[\w/-]+\.go$`)
	pathLike   = regexp.MustCompile(`^[a-z][\w-]*(/[\w-]+)+$`)
	testName   = regexp.MustCompile(`^(Test|Fuzz)[A-Z]\w*$`)
	functional = regexp.MustCompile(`^[A-Za-z]\w+$`)
)

// misnamed are the names in a document of what is not there. Short names are meant
// relative to internal, or to what was named last.
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
			lastFile, end := "", 0 // a file that was named, and where
			for _, at := range quoted.FindAllStringSubmatchIndex(line, -1) {
				name := line[at[2]:at[3]]
				between := line[end:at[0]]
				found, isFile := resolve(name, last)
				switch {
				case found != "" && isFile:
					last, lastFile, end = path.Dir(found), found, at[1]
				case found != "":
					last, lastFile = found, ""
				case goFile.MatchString(name), pathLike.MatchString(name) && strings.HasPrefix(name, "internal/"):
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

// resolve is the path of a file or of a package that a name is for, or "".
func resolve(name, last string) (found string, isFile bool) {
	for _, at := range []string{path.Join(last, name), name, path.Join("internal", name), path.Join("internal", last, name)} {
		if info, err := os.Stat(filepath.Join(root, at)); err == nil {
			return at, !info.IsDir()
		}
	}
	return "", false
}

// declaredNames are the functions and methods of each file, and, under "", the tests.
func declaredNames(t *testing.T) map[string]map[string]bool {
	t.Helper()
	names := map[string]map[string]bool{"": {}}
	require.NoError(t, filepath.WalkDir(root, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".go" {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		names[rel] = make(map[string]bool)
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				names[rel][f.Name.Name] = true
				if testName.MatchString(f.Name.Name) {
					names[""][f.Name.Name] = true
				}
			}
		}
		return nil
	}))
	return names
}
