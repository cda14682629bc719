package config

import (
	"path/filepath"
)

// This file is the section [preview] of the configuration: which files a
// preview of the project is made of.

// A Preview is which files are shown. What is nil is not configured.
type Preview struct {
	// Directory holds the files: relative to the project's root, or absolute.
	Directory *string
	// Fallback tells whether the directory's index.html answers for addresses that no
	// file has, as pages want it that make their addresses themselves. Absent: it does.
	Fallback *bool
}

// decodePreview reads [preview], and notes what is wrong. home is the user's directory, "" if
// that is not known.
func decodePreview(t table, home string) Preview {
	t.Only([]string{"directory", "fallback"})
	p := Preview{Directory: t.Text("directory"), Fallback: t.Flag("fallback")}
	if p.Directory != nil {
		name := fileNames{Home: home}.Path(filepath.FromSlash(*p.Directory), false)
		p.Directory = &name
	}
	return p
}

// ReachesOut reports whether the directory is named as one outside of the project. One that
// is named as one within it and is a symbolic link to another place is not: such links are
// not followed.
func (p Preview) ReachesOut() bool { return p.Directory != nil && !filepath.IsLocal(*p.Directory) }

// Over is below with what p says in its place; unless outside is set, a directory outside of
// the project is left out.
func (p Preview) Over(below Preview, outside bool) Preview {
	if p.Directory != nil && (outside || !p.ReachesOut()) {
		below.Directory = p.Directory
	}
	if p.Fallback != nil {
		below.Fallback = p.Fallback
	}
	return below
}

// A previewSetting is a value that is configured, with its key.
type previewSetting struct {
	Key   string
	Value any
}

// Settings are the values that are configured.
func (p Preview) Settings() []previewSetting {
	var out []previewSetting
	if p.Directory != nil {
		out = append(out, previewSetting{directoryKey, *p.Directory})
	}
	if p.Fallback != nil {
		out = append(out, previewSetting{"preview.fallback", *p.Fallback})
	}
	return out
}

// NeedTrust are the values for which the user has to trust the project.
func (p Preview) NeedTrust() []previewSetting {
	if p.ReachesOut() {
		return []previewSetting{{directoryKey, *p.Directory}}
	}
	return nil
}

const directoryKey = "preview.directory"
