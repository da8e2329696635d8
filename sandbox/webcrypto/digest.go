package webcrypto

import (
	"crypto"
	"crypto/hmac"
	_ "crypto/sha1"   // crypto.Hash finds them
	_ "crypto/sha256" // crypto.Hash finds them
	_ "crypto/sha512" // crypto.Hash finds them
	"hash"
)

var hashes = map[string]crypto.Hash{"SHA-1": crypto.SHA1, "SHA-256": crypto.SHA256, "SHA-384": crypto.SHA384, "SHA-512": crypto.SHA512}

// hash reads the name of a hash.
func (a *arguments) hash() crypto.Hash {
	h, ok := hashes[a.text()]
	if !ok {
		a.err = errArguments
		return crypto.SHA256
	}
	return h
}

func sum(h crypto.Hash, data []byte) []byte {
	w := h.New()
	w.Write(data) // a hash never fails
	return w.Sum(nil)
}

// digest(hash, data) → bytes
func digest(_ *Keys, a *arguments) (any, error) {
	h, data := a.hash(), a.bytes()
	if a.err != nil {
		return nil, a.err
	}
	return sum(h, data), nil
}

func mac(h crypto.Hash, key, data []byte) []byte {
	w := hmac.New(func() hash.Hash { return h.New() }, key)
	w.Write(data)
	return w.Sum(nil)
}
