package main

import (
	"encoding/base64"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// maxDataFile is the size in bytes over which a data file is left out of a program.
const maxDataFile = 8 << 20

// dataFile is a file of the suite that travels in the program: Text, or Base64.
type dataFile struct {
	Text   *string `json:"text,omitempty"`
	Base64 string  `json:"base64,omitempty"`
	Type   string  `json:"type"`
}

// dataTypes are the types of data files by extension.
var dataTypes = map[string]string{
	".bin": "application/octet-stream", ".br": "application/octet-stream", ".csv": "text/csv",
	".dat": "application/octet-stream", ".gz": "application/gzip", ".idl": "text/plain", ".json": "application/json",
	".mp4": "video/mp4", ".png": "image/png", ".txt": "text/plain", ".vtt": "text/vtt", ".wasm": "application/wasm", ".webm": "video/webm",
	".xml": "application/xml", ".zst": "application/octet-stream",
}

func isText(mime string) bool {
	return strings.HasPrefix(mime, "text/") || mime == "application/json" || mime == "application/xml"
}

var literal = regexp.MustCompile("\"([^\"\\\\\n]{1,200})\"|'([^'\\\\\n]{1,200})'|`([^`\\\\\n$]{1,200})`")

// dataFiles finds the files that the scripts name in string literals, by path.
func (m maker) dataFiles(t testCase, scripts []script) map[string]dataFile {
	found := map[string]dataFile{}
	idl := isIDL(scripts)
	for _, s := range scripts {
		if strings.HasPrefix(s.path, "/resources/idlharness") || strings.HasPrefix(s.path, "/resources/webidl2/") {
			continue
		}
		for _, match := range literal.FindAllStringSubmatch(s.text, -1) {
			name := match[1] + match[2] + match[3]
			if idl && !strings.ContainsAny(name, "/ .") {
				m.addData(found, "/interfaces/"+name+".idl")
			}
			if i := strings.IndexAny(name, "?#"); i >= 0 {
				name = name[:i]
			}
			m.addData(found, resolve(path.Dir(t.Path), name))
			m.addData(found, resolve(path.Dir(s.path), name))
		}
	}
	return found
}

// addData adds the file at p to found, if it is a data file that is there.
func (m maker) addData(found map[string]dataFile, p string) {
	p = path.Clean(p)
	mime, ok := dataTypes[path.Ext(p)]
	name := strings.TrimPrefix(p, "/")
	if _, known := found[p]; known || !ok || !fs.ValidPath(name) {
		return
	}
	info, err := fs.Stat(m.tree, name)
	if err != nil || info.IsDir() || info.Size() > maxDataFile {
		return
	}
	content, err := fs.ReadFile(m.tree, name)
	if err != nil {
		return
	}
	f := dataFile{Type: mime}
	if isText(mime) {
		text := string(content)
		f.Text = &text
	} else {
		f.Base64 = base64.StdEncoding.EncodeToString(content)
	}
	found[p] = f
}
