package schemas

import (
	"io/fs"
	"slices"
)

// beyond are the names of the oldest files without which the others are within the bounds. The one named but is never among them.
func beyond(files []fs.FileInfo, but string, most int, total int64) []string {
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	count, size := len(files), int64(0)
	for _, f := range files {
		size += f.Size()
	}
	var names []string
	for _, f := range files {
		if count <= most && size <= total {
			break
		}
		if f.Name() != but {
			names = append(names, f.Name())
			count--
			size -= f.Size()
		}
	}
	return names
}
