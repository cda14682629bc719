package preview

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

const most = 1 << 20 // bytes of a file

// write writes files of a directory: names with their texts.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

// showing returns a preview of a project with a configured directory, or "".
func showing(root, dir string) *Preview {
	var c config.Preview
	if dir != "" {
		c.Directory = &dir
	}
	return New(Options{Root: root, Configured: func(context.Context) (config.Preview, error) { return c, nil }})
}

func kindOf(err error) string {
	if e, ok := errors.AsType[*domain.Error](err); ok {
		return e.Kind
	}
	return ""
}

func TestFetch(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{
		"secret": "s", "dist/index.html": "home", "dist/app.js": "js", "dist/a.unknown": "?", "dist/docs/index.html": "docs", "dist/empty/x.txt": "x", "dist/page": "page",
		"dist/.env": "key", "dist/.git/config": "g", "dist/.well-known/x.json": "{}", "dist/LOUD.HTML": "loud", "dist/empty.css": "",
	})
	p := showing(root, "")
	for url, want := range map[string]struct {
		status     int
		typ, text  string
		redirected string
	}{
		"/":                    {200, "text/html; charset=utf-8", "home", ""},
		"/app.js":              {200, "text/javascript; charset=utf-8", "js", ""},
		"/app.js?v=1":          {200, "text/javascript; charset=utf-8", "js", ""},
		"/a.unknown":           {200, "application/octet-stream", "?", ""},
		"/LOUD.HTML":           {200, "text/html; charset=utf-8", "loud", ""},
		"/empty.css":           {200, "text/css; charset=utf-8", "", ""},
		"/docs/":               {200, "text/html; charset=utf-8", "docs", ""},
		"/docs?a=b":            {301, "text/plain; charset=utf-8", "", "/docs/?a=b"},
		"/page":                {200, "application/octet-stream", "page", ""},
		"/users/5":             {200, "text/html; charset=utf-8", "home", ""},
		"/users/5/":            {200, "text/html; charset=utf-8", "home", ""},
		"/empty":               {200, "text/html; charset=utf-8", "home", ""},
		"/missing.js":          {404, "text/plain; charset=utf-8", "404: there is no such file in the preview\n", ""},
		"/.env":                {404, "text/plain; charset=utf-8", "404: there is no such file in the preview\n", ""},
		"/.git/config":         {404, "text/plain; charset=utf-8", "404: there is no such file in the preview\n", ""},
		"/.git":                {404, "text/plain; charset=utf-8", "404: there is no such file in the preview\n", ""},
		"/.well-known/x.json":  {200, "application/json", "{}", ""},
		"/app.js/../secret.js": {},
	} {
		r, err := p.Fetch(t.Context(), url, "", most)
		if want.status == 0 {
			assert.Equal(t, domain.KindNavigation, kindOf(err), url)
			continue
		}
		require.NoError(t, err, url)
		assert.Equal(t, want.status, r.Status, url)
		assert.Equal(t, want.typ, r.Headers["Content-Type"], url)
		assert.Equal(t, want.text, string(r.Body), url)
		assert.Equal(t, want.redirected, r.Headers["Location"], url)
	}
}

func TestNoFallback(t *testing.T) {
	root, no := t.TempDir(), false
	write(t, root, map[string]string{"site/index.html": "home"})
	dir := "site"
	p := New(Options{Root: root, Configured: func(context.Context) (config.Preview, error) {
		return config.Preview{Directory: &dir, Fallback: &no}, nil
	}})
	r, err := p.Fetch(t.Context(), "/users", "", most)
	require.NoError(t, err)
	assert.Equal(t, 404, r.Status)
	r, err = p.Fetch(t.Context(), "/", "", most)
	require.NoError(t, err)
	assert.Equal(t, 200, r.Status)
}

func TestWhatCannotBeShown(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"", "dist", "/nowhere/at/all"} {
		_, err := showing(root, dir).Fetch(t.Context(), "/", "", most)
		assert.Equal(t, domain.KindPreviewLoad, kindOf(err), "%q", dir)
	}
	write(t, root, map[string]string{"dist/other.html": "x"})
	_, err := showing(root, "dist").Fetch(t.Context(), "/", "", most)
	assert.Equal(t, domain.KindPreviewLoad, kindOf(err))
	assert.ErrorContains(t, err, "dist/index.html")
	require.NoError(t, os.WriteFile(filepath.Join(root, "dist/film.mp4"), nil, 0o600))
	require.NoError(t, os.Truncate(filepath.Join(root, "dist/film.mp4"), most+1))
	_, err = showing(root, "dist").Fetch(t.Context(), "/film.mp4", "", most)
	assert.Equal(t, domain.KindPreviewLoad, kindOf(err))
	assert.ErrorContains(t, err, "too long")
	require.NoError(t, os.Truncate(filepath.Join(root, "dist/film.mp4"), most))
	r, err := showing(root, "dist").Fetch(t.Context(), "/film.mp4", "", most)
	require.NoError(t, err)
	assert.Len(t, r.Body, most)
}

func TestTheFirstUsualDirectoryIsShown(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{"public/index.html": "public", "build/main.o": "x"})
	text := func() string {
		r, err := showing(root, "").Fetch(t.Context(), "/", "", most)
		require.NoError(t, err)
		return string(r.Body)
	}
	assert.Equal(t, "public", text(), "build has no index.html")
	write(t, root, map[string]string{"dist/index.html": "dist"})
	assert.Equal(t, "dist", text(), "which a build has made meanwhile")

	root = t.TempDir()
	write(t, root, map[string]string{"index.html": "project", "build/main.o": "x", ".env": "secret"})
	assert.Equal(t, "project", text(), "a site without a build")
	r, err := showing(root, "").Fetch(t.Context(), "/.env", "", most)
	require.NoError(t, err)
	assert.Equal(t, 404, r.Status)
}

func TestNothingLeadsOutOfThePreview(t *testing.T) {
	outside, root := t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"secret.txt": "s", "index.html": "elsewhere"})
	write(t, root, map[string]string{"dist/index.html": "home", "dist/real.txt": "real", "secret.txt": "s"})
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
	}
	link(filepath.Join(outside, "secret.txt"), "dist/absolute.txt")
	link("../secret.txt", "dist/up.txt")
	link(outside, "dist/directory")
	link("real.txt", "dist/within.txt")
	link(outside, "linked")
	p := showing(root, "dist")
	for _, url := range []string{"/absolute.txt", "/up.txt", "/directory/secret.txt"} {
		r, err := p.Fetch(t.Context(), url, "", most)
		require.NoError(t, err, url)
		assert.Equal(t, 404, r.Status, url)
	}
	r, err := p.Fetch(t.Context(), "/directory", "", most)
	require.NoError(t, err)
	assert.Equal(t, "home", string(r.Body))
	r, err = p.Fetch(t.Context(), "/within.txt", "", most)
	require.NoError(t, err)
	assert.Equal(t, "real", string(r.Body))

	for _, dir := range []string{"linked", filepath.Join(root, "linked")} {
		_, err := showing(root, dir).Fetch(t.Context(), "/", "", most)
		assert.Equal(t, domain.KindPreviewLoad, kindOf(err), "the project's link does not choose what is shown: %s", dir)
	}
	r, err = showing(root, outside).Fetch(t.Context(), "/", "", most)
	require.NoError(t, err, "the user has named it")
	assert.Equal(t, "elsewhere", string(r.Body))
	rel, err := filepath.Rel(root, outside)
	require.NoError(t, err)
	r, err = showing(root, rel).Fetch(t.Context(), "/", "", most)
	require.NoError(t, err)
	assert.Equal(t, "elsewhere", string(r.Body))
}

func TestLinksDoNotShowHiddenFiles(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{
		"dist/index.html": "home", "dist/.env": "key", "dist/.git/config": "g", "dist/.git/config.json": "g", "dist/docs/.secret": "s", "dist/docs/page.html": "docs", "dist/.well-known/x.json": "{}",
	})
	linkIn(t, root, map[string]string{
		"dist/env.txt": ".env", "dist/chain.txt": "env.txt", "dist/git": ".git", "dist/up/x.txt": "../docs/.secret", "dist/hidden.json": ".well-known/x.json",
		"dist/round.html": "docs/../docs/page.html", "dist/through.html": ".git/../docs/page.html", "dist/loop": "loop", "dist/manual": "docs", "dist/docs/index.html": "../.env",
	})
	p := showing(root, "dist")
	for _, url := range []string{"/env.txt", "/chain.txt", "/git/config.json", "/up/x.txt", "/through.html", "/loop/x.txt", "/docs/index.html"} {
		r, err := p.Fetch(t.Context(), url, "", most)
		require.NoError(t, err, url)
		assert.Equal(t, 404, r.Status, url)
	}
	for url, want := range map[string]string{"/hidden.json": "{}", "/round.html": "docs", "/manual/page.html": "docs", "/git": "home", "/git/config": "home", "/docs/": "home"} {
		r, err := p.Fetch(t.Context(), url, "", most)
		require.NoError(t, err, url)
		assert.Equal(t, want, string(r.Body), url)
	}
}

// Without configuration, a link in place of a usual directory does not choose the project itself.
func TestNoUsualDirectoryIsTheProjectItself(t *testing.T) {
	for name, link := range map[string]string{"the project": ".", "the project, the long way": "src/..", "a directory above it": "..", "a hidden directory": ".cache", "the state directory": ".duet"} {
		root := t.TempDir()
		write(t, root, map[string]string{"index.html": "project", ".cache/index.html": "cache", ".duet/index.html": "state", "src/main.c": "", "public/index.html": "public"})
		linkIn(t, root, map[string]string{"dist": link})
		r, err := showing(root, "").Fetch(t.Context(), "/", "", most)
		require.NoError(t, err, name)
		assert.Equal(t, "public", string(r.Body), name)
	}
}

func TestNoLinkChoosesAHiddenDirectory(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{".git/index.html": "git", ".duet/index.html": "state", ".duet/x/index.html": "state", ".vitepress/dist/index.html": "pages", "src/index.html": "src"})
	linkIn(t, root, map[string]string{"dist": ".git", "site": ".duet/x", "pages": "src"})
	for _, dir := range []string{"dist", "site", ".git", ".duet", ".duet/x", ".DUET", filepath.Join(root, ".duet")} {
		_, err := showing(root, dir).Fetch(t.Context(), "/", "", most)
		assert.Equal(t, domain.KindPreviewLoad, kindOf(err), dir)
	}
	for dir, want := range map[string]string{".vitepress/dist": "pages", "pages": "src"} {
		r, err := showing(root, dir).Fetch(t.Context(), "/", "", most)
		require.NoError(t, err, dir)
		assert.Equal(t, want, string(r.Body), dir)
	}
}

// Another process may replace a file with a link at any time.
func TestALinkThatComesMeanwhileIsNotFollowed(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{"page.txt": "page", ".env": "key"})
	linkIn(t, root, map[string]string{"link": ".env"})
	dir, err := os.OpenRoot(root)
	require.NoError(t, err)
	defer dir.Close()
	at, err := reach(dir, "page.txt", hiddenAlways)
	require.NoError(t, err)
	f, err := at.open()
	require.NoError(t, err)
	f.Close()
	require.NoError(t, os.Rename(filepath.Join(root, "link"), filepath.Join(root, "page.txt")))
	_, err = at.open()
	assert.ErrorIs(t, err, errReplaced)
}

// linkIn makes symbolic links in a directory: names with what they lead to.
func linkIn(t *testing.T, dir string, links map[string]string) {
	t.Helper()
	for name, to := range links {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		if err := os.Symlink(filepath.FromSlash(to), path); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
	}
}

func TestTextsAreCutBetweenCharacters(t *testing.T) {
	assert.Equal(t, "abc", cut("abc", 3))
	assert.Equal(t, "é…", cut("ééé", 5))
	assert.LessOrEqual(t, len(cut(strings.Repeat("é", 9000), mostText)), mostText)
}
