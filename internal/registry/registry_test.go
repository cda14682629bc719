package registry_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/registry"
)

func entry(distribution string) []byte {
	return []byte(`{"id":"theirs","name":"Theirs","version":"1.2.3","description":"An agent.","website":"https://example.com","distribution":` + distribution + `}`)
}

func binary(archive, sha, cmd string) string {
	return fmt.Sprintf(`{"binary":{%q:{"archive":%q,"sha256":%q,"cmd":%q,"args":["acp"],"env":{"A":"b"}}}}`, registry.Platform(), archive, sha, cmd)
}

var anyDigest = strings.Repeat("0a", 32)

func everything(string) bool { return true }

func TestParseFindsAnAgent(t *testing.T) {
	one := string(entry(`{"npx":{"package":"@theirs/agent@1.2.3"}}`))
	other := strings.Replace(one, `"theirs"`, `"other"`, 1)
	for name, c := range map[string]struct{ text, id, want, err string }{
		"alone":             {one, "", "theirs", ""},
		"alone, named":      {one, "theirs", "theirs", ""},
		"alone, another":    {one, "their", "", `no agent "their"; it has theirs`},
		"one of two":        {`{"version":"1.0.0","agents":[` + one + `,` + other + `]}`, "other", "other", ""},
		"two, none named":   {`{"agents":[` + one + `,` + other + `]}`, "", "", "2 agents: say which one"},
		"beside a bad one":  {`{"agents":[7,{"id":5},` + one + `]}`, "theirs", "theirs", ""},
		"no JSON":           {`<html>`, "", "", "no registry of agents"},
		"something else":    {`{"name":"x"}`, "", "", "neither an id nor agents"},
		"an empty registry": {`{"agents":[]}`, "x", "", "neither an id nor agents"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := registry.Parse([]byte(c.text), c.id)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, e.ID)
		})
	}
}

// Parse refuses entries that would run something else than what the user sees.
func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, err string }{
		"a git repository for npx":  {string(entry(`{"npx":{"package":"github:x/y"}}`)), "not the name of a package"},
		"a URL for npx":             {string(entry(`{"npx":{"package":"https://x/y.tgz"}}`)), "not the name of a package"},
		"an option for npx":         {string(entry(`{"npx":{"package":"--call=x"}}`)), "not the name of a package"},
		"an alias for npx":          {string(entry(`{"npx":{"package":"a@npm:b"}}`)), "not the name of a package"},
		"an option for uvx":         {string(entry(`{"uvx":{"package":"--from"}}`)), "not the name of a package"},
		"a URL for uvx":             {string(entry(`{"uvx":{"package":"x @ https://y"}}`)), "not the name of a package"},
		"a member that is unknown":  {string(entry(`{"npx":{"package":"x","registry":"https://y"}}`)), "unknown field"},
		"no way":                    {string(entry(`{}`)), "no way to get it"},
		"a cmd outside":             {string(entry(binary("https://x/a.zip", anyDigest, "../x"))), "no file of the archive"},
		"an absolute cmd":           {string(entry(binary("https://x/a.zip", anyDigest, "/bin/sh"))), "no file of the archive"},
		"the directory itself":      {string(entry(binary("https://x/a.zip", anyDigest, "./"))), "no file of the archive"},
		"a short checksum":          {string(entry(binary("https://x/a.zip", "abc", "./x"))), "64 hexadecimal digits"},
		"a variable with =":         {string(entry(`{"npx":{"package":"x","env":{"A=B":"c"}}}`)), "no proper name"},
		"an argument that steers":   {string(entry(`{"npx":{"package":"x","args":["\u001b[2J"]}}`)), "control characters"},
		"an argument that reverses": {string(entry(`{"npx":{"package":"x","args":["\u202e"]}}`)), "control characters"},
		"a version that is a path":  {strings.Replace(string(entry(`{"npx":{"package":"x"}}`)), "1.2.3", "../1.2.3", 1), "its version"},
		"an id that is a path":      {strings.Replace(string(entry(`{"npx":{"package":"x"}}`)), `"theirs"`, `"../x"`, 1), "its id"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := registry.Parse([]byte(c.text), "")
			require.ErrorContains(t, err, c.err)
		})
	}
}

func parse(t *testing.T, distribution string) registry.Entry {
	t.Helper()
	e, err := registry.Parse(entry(distribution), "")
	require.NoError(t, err)
	return e
}

func TestPlanTakesTheFirstWayThatWorks(t *testing.T) {
	packages := `"npx":{"package":"@theirs/agent@1.2.3","args":["--acp"],"env":{"A":"b"}},"uvx":{"package":"theirs"}`
	all := parse(t, strings.TrimSuffix(binary("https://x/a.zip", anyDigest, "./bin/theirs"), "}")+","+packages+"}")
	p, err := all.Plan(registry.Choice{Directory: "/data", Has: everything})
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.FromSlash("/data/theirs/1.2.3/bin/theirs"), "acp"}, p.Command)

	p, err = all.Plan(registry.Choice{Via: registry.ViaNPX, Has: everything})
	require.NoError(t, err)
	assert.Equal(t, []string{"npx", "--yes", "@theirs/agent@1.2.3", "--acp"}, p.Command)
	assert.Equal(t, map[string]string{"A": "b"}, p.Env)
	assert.Len(t, p.Notes, 1)

	unchecked := parse(t, strings.TrimSuffix(binary("https://x/a.zip", "", "./x"), "}")+","+packages+"}")
	p, err = unchecked.Plan(registry.Choice{Has: func(program string) bool { return program == "uvx" }})
	require.NoError(t, err)
	assert.Equal(t, []string{"uvx", "theirs"}, p.Command)
	assert.Contains(t, p.Notes[1], "No exact version")

	_, err = unchecked.Plan(registry.Choice{Has: func(string) bool { return false }})
	require.ErrorContains(t, err, "no checksum")
	require.ErrorContains(t, err, "install Node.js")
	_, err = unchecked.Plan(registry.Choice{Via: "curl", Has: everything})
	require.ErrorContains(t, err, "binary, npx and uvx")
	_, err = parse(t, `{"npx":{"package":"x"}}`).Plan(registry.Choice{Via: registry.ViaUVX, Has: everything})
	require.ErrorContains(t, err, "does not offer")
}

func TestPlanHasAChecksumOrIsNone(t *testing.T) {
	unchecked := parse(t, binary("https://x/a.zip", "", "./x"))
	_, err := unchecked.Plan(registry.Choice{Has: everything})
	require.ErrorContains(t, err, "--sha256")
	p, err := unchecked.Plan(registry.Choice{SHA256: strings.ToUpper(anyDigest), Has: everything})
	require.NoError(t, err)
	assert.Equal(t, anyDigest, p.SHA256)
	_, err = parse(t, binary("https://x/a.zip", anyDigest, "./x")).Plan(registry.Choice{SHA256: strings.Repeat("00", 32), Has: everything})
	require.ErrorContains(t, err, "another checksum")
	_, err = parse(t, binary("https://x/a.rpm", anyDigest, "./x")).Plan(registry.Choice{Has: everything})
	require.ErrorContains(t, err, "none that can be unpacked")
}

// A file of an archive.
type file struct {
	name, text string
	mode       int64
	kind       byte
}

func tarball(t *testing.T, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.text)), Typeflag: f.kind}
		if f.kind == tar.TypeSymlink || f.kind == tar.TypeLink {
			h.Linkname, h.Size, f.text = f.text, 0, ""
		}
		require.NoError(t, w.WriteHeader(h))
		_, err := w.Write([]byte(f.text))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	return b.Bytes()
}

func zipped(t *testing.T, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name}
		h.SetMode(os.FileMode(f.mode))
		out, err := w.CreateHeader(h)
		require.NoError(t, err)
		_, err = out.Write([]byte(f.text))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// site is an HTTPS server with files.
func site(t *testing.T, files map[string][]byte) *httptest.Server {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Write(content)
	}))
	t.Cleanup(s.Close)
	return s
}

// install reads a registry from a site with the archive, and installs its agent.
func install(t *testing.T, name string, archive []byte, sha string) (registry.Plan, error) {
	t.Helper()
	files := map[string][]byte{"/" + name: archive}
	s := site(t, files)
	files["/agent.json"] = entry(binary(s.URL+"/"+name, sha, "./bin/theirs"))
	text, source, err := registry.Read(t.Context(), s.URL+"/agent.json", s.Client())
	require.NoError(t, err)
	e, err := registry.Parse(text, "")
	require.NoError(t, err)
	p, err := e.Plan(registry.Choice{Directory: filepath.Join(t.TempDir(), "agents"), Has: everything})
	require.NoError(t, err)
	return p, source.Install(t.Context(), p)
}

var program = file{name: "./bin/theirs", text: "#!/bin/sh\n", mode: 0o4755, kind: tar.TypeReg}

func TestInstallUnpacksTheArchive(t *testing.T) {
	for name, archive := range map[string][]byte{
		"a.tar.gz": tarball(t, file{name: "./", mode: 0o755, kind: tar.TypeDir}, program, file{"README", "read me", 0o666, tar.TypeReg}),
		"a.zip":    zipped(t, program, file{"README", "read me", 0o666, 0}),
	} {
		t.Run(name, func(t *testing.T) {
			p, err := install(t, name, archive, digest(archive))
			require.NoError(t, err)
			text, err := os.ReadFile(p.Command[0])
			require.NoError(t, err)
			assert.Equal(t, program.text, string(text))
			if runtime.GOOS != "windows" {
				info, err := os.Stat(p.Command[0])
				require.NoError(t, err)
				assert.Equal(t, os.FileMode(0o755), info.Mode(), "and not set-user-id")
			}
			left, err := os.ReadDir(filepath.Dir(p.Directory))
			require.NoError(t, err)
			assert.Len(t, left, 1, "nothing but the version")
		})
	}
}

func TestInstallLeavesNothingOfWhatItRefuses(t *testing.T) {
	good := tarball(t, program)
	for name, c := range map[string]struct {
		name    string
		archive []byte
		sha     string
		err     string
	}{
		"another archive":       {"a.tar.gz", good, anyDigest, "not the one that was meant"},
		"one that is cut":       {"a.tar.gz", good[:len(good)-20], "", "unpacking"},
		"one without a program": {"a.tar.gz", tarball(t, file{"bin/other", "x", 0o755, tar.TypeReg}), "", "no program"},
		"a directory for it":    {"a.tar.gz", tarball(t, file{"bin/theirs", "", 0o755, tar.TypeDir}), "", "no program"},
		"a path outside":        {"a.tar.gz", tarball(t, program, file{"../../evil", "x", 0o755, tar.TypeReg}), "", "outside of its directory"},
		"an absolute path":      {"a.tar.gz", tarball(t, program, file{"/evil", "x", 0o755, tar.TypeReg}), "", "outside of its directory"},
		"a path through":        {"a.zip", zipped(t, program, file{"bin/../../evil", "x", 0o755, 0}), "", "outside of its directory"},
		"a path of Windows":     {"a.zip", zipped(t, program, file{`..\evil`, "x", 0o755, 0}), "", "outside of its directory"},
		"a symbolic link":       {"a.tar.gz", tarball(t, file{"bin", "/tmp", 0o777, tar.TypeSymlink}, program), "", "neither a file nor a directory"},
		"a hard link":           {"a.tar.gz", tarball(t, file{"bin/theirs", "/bin/sh", 0o777, tar.TypeLink}), "", "neither a file nor a directory"},
		"a link in a zip":       {"a.zip", zipped(t, file{"bin/theirs", "/bin/sh", int64(os.ModeSymlink | 0o777), 0}), "", "neither a file nor a directory"},
		"a deep path":           {"a.tar.gz", tarball(t, program, file{strings.Repeat("d/", 65) + "f", "x", 0o755, tar.TypeReg}), "", "more than 64 directories deep"},
		"a deep directory":      {"a.zip", zipped(t, program, file{strings.Repeat("d/", 65), "", int64(os.ModeDir | 0o755), 0}), "", "more than 64 directories deep"},
		"the same file twice":   {"a.tar.gz", tarball(t, program, program), "", "exists"},
		"no archive":            {"a.zip", []byte("<html>"), "", "unpacking"},
	} {
		t.Run(name, func(t *testing.T) {
			sha := c.sha
			if sha == "" {
				sha = digest(c.archive)
			}
			p, err := install(t, c.name, c.archive, sha)
			require.ErrorContains(t, err, c.err)
			left, err := os.ReadDir(filepath.Dir(p.Directory))
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
}

func TestInstallKeepsWhatWasThereUntilTheNewOneIsGood(t *testing.T) {
	good := tarball(t, program)
	dir := t.TempDir()
	archive := filepath.Join(dir, "a.tar.gz")
	require.NoError(t, os.WriteFile(archive, good, 0o600))
	from := filepath.Join(dir, "agent.json")
	require.NoError(t, os.WriteFile(from, entry(binary("file://"+filepath.ToSlash(archive), digest(good), "bin/theirs")), 0o600))
	text, source, err := registry.Read(t.Context(), from, nil)
	require.NoError(t, err)
	e, err := registry.Parse(text, "")
	require.NoError(t, err)
	p, err := e.Plan(registry.Choice{Directory: filepath.Join(dir, "agents"), Has: everything})
	require.NoError(t, err)
	require.NoError(t, source.Install(t.Context(), p))
	require.NoError(t, source.Install(t.Context(), p), "again")
	require.NoError(t, os.WriteFile(archive, []byte("other"), 0o600))
	require.ErrorContains(t, source.Install(t.Context(), p), "not the one that was meant")
	assert.FileExists(t, p.Command[0])

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, source.Install(ctx, p), context.Canceled)
	assert.FileExists(t, p.Command[0])
}

func TestReadTakesHTTPSAndFilesAlone(t *testing.T) {
	s := site(t, map[string][]byte{"/long": bytes.Repeat([]byte(" "), 11<<20)})
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	away := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	t.Cleanup(away.Close)
	for from, want := range map[string]string{
		plain.URL:              "only https is",
		"ftp://example.com/x":  "only https is",
		away.URL:               "away from https",
		s.URL + "/nothing":     "404 Not Found",
		s.URL + "/long":        "longer than",
		t.TempDir():            "no regular file",
		"/no/such/file/at/all": "no such file",
	} {
		_, _, err := registry.Read(t.Context(), from, s.Client())
		if want == "no such file" {
			require.ErrorIs(t, err, os.ErrNotExist)
			continue
		}
		require.ErrorContains(t, err, want)
	}
}

// A registry from the network cannot install a file of this machine.
func TestArchivesOfTheNetworkAreNoFilesOfThisMachine(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "a.tar.gz")
	good := tarball(t, program)
	require.NoError(t, os.WriteFile(archive, good, 0o600))
	e := parse(t, binary("file://"+filepath.ToSlash(archive), digest(good), "bin/theirs"))
	p, err := e.Plan(registry.Choice{Directory: t.TempDir(), Has: everything})
	require.NoError(t, err)
	require.ErrorContains(t, registry.Source{}.Install(t.Context(), p), "only https is")
}
