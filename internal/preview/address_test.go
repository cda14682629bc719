package preview

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

const here = "http://127.0.0.1:8080"

func TestAddresses(t *testing.T) {
	for url, want := range map[string]string{
		"/": "/", "": "/", "/index.html": "/index.html", "a.js": "/a.js", "/a//b/./c": "/a/b/c", "/docs/": "/docs/", "/docs?a=b#c": "/docs?a=b#c",
		"/a%20b.html": "/a%20b.html", "/caf\u00e9": "/caf%C3%A9", "/%252e%252e/x": "/%252e%252e/x", "?q": "/?q", "/a..b": "/a..b",
		here + "/app.js": "/app.js", "HTTP://127.0.0.1:8080": "/",
	} {
		a, err := Parse(url, here)
		require.NoError(t, err, url)
		assert.Equal(t, want, a.String(), url)
		again, err := Parse(a.String(), "")
		require.NoError(t, err, url)
		assert.Equal(t, a, again, url)
	}
}

func TestAddressesThatLeadElsewhereAreRefused(t *testing.T) {
	for _, url := range []string{
		"/../secret", "/a/../../b", "..", "/%2e%2e/secret", "/%2E%2E%2Fsecret", "/a%2fb", "/a%5cb", `/..\secret`, `\\host\share`, "/a%00b", "/a\x00b", "/a%0ab", "/\t/host/x",
		"//host/x", "http://host/x", "https://127.0.0.1:8080/x", here + "1/x", "http://user@127.0.0.1:8080/x", "file:///etc/passwd", "javascript:alert(1)", "data:text/html,x", "/%zz",
		"/" + strings.Repeat("a", mostURL),
	} {
		_, err := Parse(url, here)
		var e *domain.Error
		require.ErrorAs(t, err, &e, "%.60q", url)
		assert.Equal(t, domain.KindNavigation, e.Kind, url)
	}
	_, err := Parse(here+"/x", "")
	assert.Error(t, err, "who has not said where it is has no origin")
}

// Any parsed address is below the root and parses to itself again.
func FuzzParse(f *testing.F) {
	for _, url := range []string{"/", "/a/b?c#d", "/%2e%2e/x", "/a%2fb", "//host", `\\h\x`, "http://127.0.0.1:8080/x", "/.git/config", "/a%00", "a:b", "/%252f", "?", "/;a", "/a/..b/", "#" + strings.Repeat("\xc0", 5000)} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		a, err := Parse(url, here)
		if err != nil {
			return
		}
		if !fs.ValidPath(a.Name) || strings.ContainsAny(a.Name, "\\\x00") {
			t.Fatalf("%q is %q", url, a.Name)
		}
		for part := range strings.SplitSeq(a.Name, "/") {
			if part == ".." {
				t.Fatalf("%q leads upwards: %q", url, a.Name)
			}
		}
		if again, err := Parse(a.String(), ""); err != nil || again != a {
			t.Fatalf("%q is %+v, and as %q again %+v, %v", url, a, a.String(), again, err)
		}
	})
}
