//go:build !linux

package durable

import (
	"io/fs"
	"os"
	"path/filepath"
)

// SyncTree writes all files below a directory to the disk.
func SyncTree(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var names []string
	err = fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		names = append(names, filepath.FromSlash(name))
		return err
	})
	if err != nil {
		return err
	}
	return SyncFiles(root, names)
}
