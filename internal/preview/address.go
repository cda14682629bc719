package preview

import (
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Address is a location in a preview, as its URL names it.
type Address struct {
	Name      string // of a file or a directory, as in [fs.ValidPath]; "." is the root
	Directory bool   // the URL ends with a slash
	Page      bool   // the last part has no extension: possibly a client-side route
	rest      string // the query and the fragment, each with its mark
}

// mostURL limits an address, in bytes, parsed and formatted.
const mostURL = 8 << 10

// Parse parses a URL: a path, or a full URL of origin. origin is "" if the client has not said
// where it shows the preview. The result is always below the root; a URL that leads outside is
// refused, not corrected.
func Parse(raw, origin string) (Address, error) {
	if len(raw) > mostURL {
		return Address{}, refuseLong()
	}
	a, err := parse(raw, origin)
	if err == nil && len(a.String()) > mostURL {
		return Address{}, refuseLong()
	}
	return a, err
}

func refuseLong() error { return refuse("its address is longer than 8 KiB") }

func parse(raw, origin string) (Address, error) {
	// Browsers treat a backslash as a slash, and drop tabs and line ends.
	if strings.ContainsFunc(raw, func(r rune) bool { return r == '\\' || r < 0x20 || r == 0x7f }) {
		return Address{}, refuse("its address has a backslash, or a character that controls something")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return Address{}, refuse("its address cannot be read")
	}
	if u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" {
		if origin == "" {
			return Address{}, refuse("its address is that of another origin; name a path, such as /index.html")
		}
		own, err := url.Parse(origin)
		if err != nil || own.Host == "" || u.User != nil || u.Opaque != "" ||
			!strings.EqualFold(u.Scheme, own.Scheme) || !strings.EqualFold(u.Host, own.Host) {
			return Address{}, refuse("its address is that of another origin than the preview's")
		}
	}
	if encoded := strings.ToLower(u.EscapedPath()); strings.Contains(encoded, "%2f") ||
		strings.Contains(encoded, "%5c") {
		return Address{}, refuse("its path has a slash or a backslash in the name of a file")
	}
	if strings.ContainsFunc(u.Path, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return Address{}, refuse("its path has a character that controls something")
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if part == ".." {
			return Address{}, refuse("its path leads upwards (..)")
		}
	}
	a := Address{
		Name:      strings.TrimPrefix(path.Clean("/"+u.Path), "/"),
		Directory: strings.HasSuffix(u.Path, "/") || strings.HasSuffix(u.Path, "/."),
	}
	if a.Name == "" {
		a.Name, a.Directory = ".", true
	}
	if !fs.ValidPath(a.Name) || !filepath.IsLocal(filepath.FromSlash(a.Name)) {
		return Address{}, refuse("its path is none that a file here can have")
	}
	a.Page = a.Directory || !strings.Contains(path.Base(a.Name), ".")
	if u.RawQuery != "" || u.ForceQuery {
		a.rest = "?" + u.RawQuery
	}
	if u.Fragment != "" {
		a.rest += "#" + u.EscapedFragment()
	}
	return a, nil
}

// String returns the address as a path with query and fragment, for navigation.
func (a Address) String() string {
	u := url.URL{Path: "/"}
	if a.Name != "." {
		u.Path += a.Name
		if a.Directory {
			u.Path += "/"
		}
	}
	return u.EscapedPath() + a.rest
}

func refuse(why string) error {
	return domain.Errorf(domain.KindNavigation, "the page is not shown: %s", why)
}
