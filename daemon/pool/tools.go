package pool

import (
	"encoding/binary"

	"github.com/executord/executord/ipc/protocol"
)

// toolset knows which tools a request announced.
type toolset map[string]*announced

// announced is one provider.
type announced struct {
	any   bool
	paths map[string]struct{} // by pathKey
}

func newToolset(providers []protocol.Provider) toolset {
	set := make(toolset, len(providers))
	for _, p := range providers {
		a := &announced{any: p.Tools.Any(), paths: make(map[string]struct{}, len(p.Tools.Paths))}
		for _, path := range p.Tools.Paths {
			a.paths[string(pathKey(nil, path))] = struct{}{}
		}
		set[p.Name] = a
	}
	return set
}

// has tells whether the program may call provider's tool at path.
func (s toolset) has(provider string, path []string) bool {
	a := s[provider]
	if a == nil {
		return false
	}
	if a.any {
		return len(path) == 1 && path[0] != ""
	}
	var buf [256]byte
	_, ok := a.paths[string(pathKey(buf[:0], path))]
	return ok
}

// pathKey appends a path so that no two paths give the same bytes.
func pathKey(dst []byte, path []string) []byte {
	for _, name := range path {
		dst = binary.AppendUvarint(dst, uint64(len(name)))
		dst = append(dst, name...)
	}
	return dst
}
